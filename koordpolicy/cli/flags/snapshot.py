"""The flags of `koordpolicy snapshot`."""

import argparse

from koordpolicy.cli.command import Usage

_USUAL = "cluster.json.gz"


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        default=_USUAL,
        metavar="FILE",
        help=f"where to put it; `.gz` compresses it (default: {_USUAL})",
    )
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="how to reach the cluster (default: as kubectl does)"
    )
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig (default: its own)")
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format of what is said of the file"
    )


USAGE = Usage(_add, "exit code: 0 well, 2 could not run")
