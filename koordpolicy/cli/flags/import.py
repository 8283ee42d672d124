"""The flags of `koordpolicy import`."""  # noqa: N999  # it is called as the command

import argparse
from pathlib import Path

from koordpolicy.cli.command import LEFT_OUT, Usage
from koordpolicy.cli.flags.cluster import add_cluster_flags


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="objects as `kubectl get -o yaml` prints them: the ConfigMap slo-controller-config, "
        "ClusterColocationProfiles; a scheduler's KubeSchedulerConfiguration",
    )
    parser.add_argument(
        "--from-cluster",
        action="store_true",
        help="read them from a live cluster, its ConfigMaps from `--namespace`",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        default="koordinator-system",
        help="where Koordinator is installed (default: %(default)s)",
    )
    add_cluster_flags(parser)
    parser.add_argument(
        "-w",
        "--write",
        metavar="DIR",
        type=Path,
        help="where to write the policies (default: only the table)",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format of the table (default: text)"
    )


USAGE = Usage(
    _add,
    "The table says what became which decision, and what could not be taken and why. Exit code: 0 all was taken, "
    f"1 the policies do not compile as they are, 2 could not run, {LEFT_OUT} something was not taken (what stays an object of the "
    "cluster does not count).",
    compiles=True,
)
