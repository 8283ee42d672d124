"""The flags of `koordpolicy descheduler`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import EPILOG, add_process_flags

HTTP_DEFAULT = "127.0.0.1:8080"
"""Where status is served unless `--once` is there."""


def _add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_process_flags(parser, traces=False, unless="with --once `off`, else ")
    parser.set_defaults(http=None)  # whether it is said depends on --once
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default="",
        help="go by this profile of Descheduling alone (default: by all there are)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="let no pod go, and say which would; nothing is written to the cluster, no lease either",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="do one round of each profile, print what it found, and end; nodes that are too full count as having been so for long"
        " enough; exit code 1 where the policies are no good",
    )
    picture = parser.add_argument_group(
        "a picture of a cluster",
        "with --once: what a round finds there; nobody goes, and no cluster is needed",
    )
    picture.add_argument("-s", "--snapshot", metavar="FILE", help="a file of `koordpolicy snapshot`")
    picture.add_argument(
        "-f",
        "--filename",
        metavar="PATH",
        action="append",
        help="manifests, or what `kubectl get nodes,pods,nodemetrics -A -o yaml` gives, as of their newest report; may be repeated",
    )
    parser.add_argument("--output", choices=("text", "json"), default="text", help="how --once prints (text)")


USAGE = Usage(_add, EPILOG)
