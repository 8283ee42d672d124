"""The flags of `koordpolicy schema`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import Usage


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", nargs="?", help="print the schema of this kind; `all` for the one that takes every kind"
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="format of the list of kinds; a schema is JSON always",
    )
    parser.add_argument(
        "-w",
        "--write",
        metavar="DIR",
        type=Path,
        help="write one file a kind into a directory instead, and the manual beside them",
    )
    parser.add_argument(
        "--crds",
        metavar="DIR",
        type=Path,
        help="write the CustomResourceDefinitions of the kinds and of PolicyRevision into a directory instead",
    )


USAGE = Usage(_add)
