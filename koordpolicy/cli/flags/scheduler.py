"""The flags of `koordpolicy scheduler`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import EPILOG, add_process_flags

EXTENDER = "--extender"
_PROFILE = "koord-scheduler"
_IN_FLIGHT = 1024
_MEMORY = "512Mi"


def _add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_process_flags(parser, port=10251)
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default=_PROFILE,
        help=f"SchedulingProfile to schedule by, for pods of its schedulerName (default: {_PROFILE})",
    )
    parser.add_argument(
        "--in-flight",
        metavar="N",
        type=int,
        default=_IN_FLIGHT,
        help=f"decisions whose bindings are on their way at most (default: {_IN_FLIGHT})",
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        default="",
        help="place pods on the nodes of shard I, from 0, of N alone; the N schedulers work at the same time, each with"
        " a lease and standbys of its own",
    )
    beside = parser.add_argument_group("beside kube-scheduler")
    beside.add_argument(
        EXTENDER,
        metavar="[HOST]:PORT",
        default="",
        help="place no pods, but serve kube-scheduler's extender calls filter, prioritize, preempt and bind there, by TLS"
        " to callers with a client certificate (--tls-cert-file, --tls-client-ca-file) or a token",
    )
    beside.add_argument(
        f"{EXTENDER}-anonymous-auth",
        action="store_true",
        help="answer callers without credentials on a loopback address: every process there may place pods",
    )
    beside.add_argument(
        f"{EXTENDER}-memory",
        metavar="SIZE",
        default=_MEMORY,
        help="memory that one call may take when it is read; its body may have a quarter of that"
        f" (default: {_MEMORY})",
    )
    beside.add_argument(
        "--extender-steps",
        metavar="STEPS",
        default="own",
        help="filters and scores of the profile to answer for: `own` (default) are those that kube-scheduler"
        " has no twin of, `all` are all of them; or their names, separated by commas",
    )


USAGE = Usage(_add, EPILOG)
