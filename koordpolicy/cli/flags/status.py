"""The flags of `koordpolicy status`."""

import argparse

from koordpolicy.cli.command import Usage


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="how to reach the cluster (default: as kubectl does)"
    )
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig (default: its own)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="format")


USAGE = Usage(
    _add,
    "Reads objects alone: PolicyRevisions, Leases, nodes, NodeMetrics and pods; the role `koordpolicy-snapshot` may. "
    "Exit code: 0 well, 1 something is to be looked at, 2 could not run.",
)
