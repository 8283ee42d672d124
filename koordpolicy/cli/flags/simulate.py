"""The flags of `koordpolicy simulate`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.workload import add_course, add_workload


def _add(parser: argparse.ArgumentParser) -> None:
    add_workload(parser)
    parser.add_argument(
        "--beside-services",
        action="store_true",
        help="simulate the services alone, too, and tell what everything beside them changes; --report FILE.svg draws it",
    )
    parser.add_argument(
        "-p",
        "--policies",
        metavar="PATH",
        action="append",
        default=[],
        help="file or directory of policies; may be repeated; without, the built-in pack with the example's profiles",
    )
    parser.add_argument(
        "--against",
        metavar="PATH",
        action="append",
        default=[],
        help="file or directory of other policies, on the same workload: what --policies change against them; may be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=["text", "json", "markdown"],
        default="text",
        help="format of the report; markdown, for a comment on a merge request, with --against alone",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write a page of HTML with charts, too, which needs nothing beside it",
    )
    parser.add_argument(
        "--start",
        metavar="TIME",
        help="the moment at which it begins, as `2026-07-01T18:00:00Z` or `2026-07-01`, for policies that read `now`,"
        " and the PolicyExceptions in force then (default: 2020-01-01, and none)",
    )
    parser.add_argument(
        "--explain",
        metavar="POD",
        action="append",
        default=[],
        help="explain the placement of this pod, or why it is pending at the end; repeatable",
    )
    parser.add_argument(
        "--without-colocation",
        action="store_true",
        help="the same workload without profiles, overcommit, suppression",
    )
    parser.add_argument(
        "--without-descheduling",
        action="store_true",
        help="the descheduler moves no pods, whatever its policies say; without this, where it moves any the report has the balance without it, too",
    )
    add_course(parser, "--against")


USAGE = Usage(
    _add,
    "exit code: 0 simulated to the end, 2 could not run, 130 interrupted (Ctrl-C, SIGTERM), after a report of the time before; with"
    " --against of the seeds that are through, else of the first one up to a moment that both reached",
)
