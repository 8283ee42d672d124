"""`koordpolicy check`: the gate in CI."""

import argparse

from koordpolicy.cli.bundle import add_paths, compile_paths
from koordpolicy.cli.command import FINDINGS, OK, Command
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.render import RENDERERS, render


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "-o", "--output", choices=list(RENDERERS), default="text", help="format of the findings"
    )
    parser.add_argument(
        "--limit", type=int, default=200, metavar="N", help="show at most N findings, 0 for all"
    )
    parser.add_argument("--strict", action="store_true", help="warnings fail the check too")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    compilation = compile_paths(arguments.paths)
    found = list(compilation.found)
    text = render(
        arguments.output,
        found,
        compilation.sources,
        colour=terminal.colour(),
        width=terminal.width,
        limit=arguments.limit,
    )
    if text:
        terminal.print(text)
    if arguments.output == "text" and not found:
        own = sum(1 for unit in compilation.units if unit.layer_name != "koordinator")
        terminal.print(f"{own or len(compilation.units)} documents, no findings")
    failing = found if arguments.strict else [one for one in found if one.severity == "error"]
    return FINDINGS if failing else OK


COMMAND = Command(
    "check",
    "find what is wrong with policies",
    _add,
    _run,
    epilog="exit code: 0 no errors, 1 findings, 2 could not run",
)
