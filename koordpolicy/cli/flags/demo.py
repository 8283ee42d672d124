"""The flags of `koordpolicy demo`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.workload import seed


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "example",
        metavar="DIRECTORY",
        nargs="?",
        help="directory with `workload.yaml` and `policies/` (default: the shipped example)",
    )
    parser.add_argument(
        "--console",
        action="store_true",
        help="show the day in a browser while it goes by (`koordpolicy console`)",
    )
    parser.add_argument("--seed", metavar="N", type=seed, default=1, help="seed of all chance (default: 1)")
    parser.add_argument("--explain", metavar="POD", help="the pod to explain (default: a job at noon)")
    parser.add_argument(
        "-o", "--output", choices=["text", "json"], default="text", help="format of the summary"
    )


USAGE = Usage(_add, "exit code: 0 simulated to the end, 2 could not run")
