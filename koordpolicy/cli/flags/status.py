"""The flags of `koordpolicy status`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.cluster import add_cluster_flags


def _add(parser: argparse.ArgumentParser) -> None:
    add_cluster_flags(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="format")


USAGE = Usage(
    _add,
    "Reads objects alone: PolicyRevisions, Leases, nodes, NodeMetrics and pods; the role `koordpolicy-snapshot` may. "
    "Exit code: 0 well, 1 something is to be looked at, 2 could not run.",
)
