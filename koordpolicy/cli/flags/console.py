"""The flags of `koordpolicy console`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.cluster import add_cluster_flags
from koordpolicy.cli.flags.workload import duration, generated, seed

HTTP = "--http"
ADDRESS = "127.0.0.1:9330"


def add_page_flags(parser: argparse.ArgumentParser, default: str = ADDRESS) -> None:
    """Declare where the page is served, and to whom."""
    parser.add_argument(
        HTTP,
        metavar="[HOST]:PORT",
        default=default,
        help=f"serve the page there; port 0 takes a free one ({default})",
    )
    parser.add_argument(
        "--bearer-token-file",
        metavar="FILE",
        type=Path,
        help="tell callers with this token alone, which the page asks for; without, everyone on this host",
    )


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "example",
        metavar="DIRECTORY",
        nargs="?",
        help="simulate what stands there, `workload.yaml` and `policies/` (default: the shipped example)",
    )
    parser.add_argument(
        "-p",
        "--policies",
        metavar="PATH",
        action="append",
        default=[],
        help="file or directory of policies; may be repeated (default: those of the example); with --live, followed as it changes",
    )
    simulated = parser.add_argument_group("a simulation")
    simulated.add_argument(
        "--generate",
        metavar="N[:M]",
        type=generated,
        help="N nodes and M pods (10 a node) of a day, drawn by the seed from published statistics",
    )
    simulated.add_argument(
        "--seed", metavar="N", type=seed, default=1, help="seed of all chance (default: 1)"
    )
    simulated.add_argument(
        "--interval", metavar="D", type=duration, help="time between the reports of agents (default: 2m)"
    )
    simulated.add_argument(
        "--until", metavar="D", type=duration, help="how long to simulate (default: all of it)"
    )
    simulated.add_argument("--paused", action="store_true", help="begin with the clock at rest")
    cluster = parser.add_argument_group(
        "a cluster",
        "which is read; with --live and a token, rollouts can be paused, resumed and aborted, and nothing else is written",
    )
    cluster.add_argument("-s", "--snapshot", metavar="FILE", help="a file of `koordpolicy snapshot`")
    cluster.add_argument(
        "-f",
        "--filename",
        metavar="PATH",
        action="append",
        help="manifests of nodes, pods and whatever else there is; may be repeated",
    )
    cluster.add_argument("--live", action="store_true", help="the cluster as it is now, again and again")
    cluster.add_argument(
        "--every", metavar="D", type=duration, help="time between looks at a live cluster (default: 30s)"
    )
    cluster.add_argument(
        "--policies-from-cluster",
        action="store_true",
        help="with --live: answer by the policy objects in the cluster, and by others once they change",
    )
    add_cluster_flags(cluster)
    add_page_flags(parser.add_argument_group("the page"))  # type: ignore[arg-type]  # a group takes the same


USAGE = Usage(_add, "exit code: 0 told to stop, 2 could not run", compiles=True)
