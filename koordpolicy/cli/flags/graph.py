"""The flags of `koordpolicy graph`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.moment import add_moment
from koordpolicy.cli.flags.paths import add_paths

SUFFIXES = {
    ".svg": "svg",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".md": "mermaid",
    ".json": "json",
    ".txt": "text",
}
_COMPONENTS = ("webhook", "manager", "scheduler", "agent", "descheduler", "runtime_proxy", "yarn_operator")


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "dot", "mermaid", "svg"),
        help="a list of decisions, Graphviz, Mermaid or a finished picture (default: by the file's suffix, else text)",
    )
    parser.add_argument(
        "-w",
        "--write",
        metavar="FILE",
        type=Path,
        help=f"write into a file; of a picture the suffix says the format: {', '.join(SUFFIXES)}",
    )
    parser.add_argument(
        "--decision", action="append", metavar="NAME", help="this decision only; may be repeated"
    )
    parser.add_argument(
        "--kind", action="append", metavar="KIND", help="decisions of this kind; may be repeated"
    )
    parser.add_argument(
        "--component",
        action="append",
        choices=_COMPONENTS,
        metavar="NAME",
        help="decisions that this component asks; may be repeated: " + ", ".join(_COMPONENTS),
    )
    parser.add_argument(
        "--detail",
        choices=("rules", "documents"),
        help="draw every rule with what it reads, or documents (default: by the number of decisions)",
    )
    add_moment(parser)


USAGE = Usage(_add, compiles=True)
