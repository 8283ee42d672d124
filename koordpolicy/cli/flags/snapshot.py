"""The flags of `koordpolicy snapshot`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.cluster import add_cluster_flags

_USUAL = "cluster.json.gz"


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        default=_USUAL,
        metavar="FILE",
        help=f"where to put it; `.gz` compresses it (default: {_USUAL})",
    )
    add_cluster_flags(parser)
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format of what is said of the file"
    )


USAGE = Usage(_add, "exit code: 0 well, 2 could not run")
