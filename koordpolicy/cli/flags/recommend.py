"""The flags of `koordpolicy recommend`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.cluster import add_cluster_flags


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="Recommendations or workloads to show (default: all)"
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", help="of this namespace alone (default: all)")
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        metavar="FILE",
        help="objects as `kubectl get recommendations,deployments -A -o yaml` prints them, instead of a live cluster",
    )
    add_cluster_flags(parser)
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format of the table"
    )
    parser.add_argument(
        "--patch",
        metavar="DIR",
        type=Path,
        help="write a Component for kustomize into DIR/NAMESPACE, with a patch of the requests of each workload",
    )
    parser.add_argument(
        "--low-confidence",
        action="store_true",
        help="write patches of recommendations, too, that cannot be relied on yet",
    )


USAGE = Usage(
    _add,
    "Requests outside of lower and upper are marked. A patch never requests more than the limit that stands in the workload. "
    "Exit code: 0 well, 1 not all patches could be written, 2 could not run.",
)
