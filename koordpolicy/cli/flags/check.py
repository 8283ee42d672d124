"""The flags of `koordpolicy check`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.fixes import add_fix
from koordpolicy.cli.flags.max_cost import add_max_cost
from koordpolicy.cli.flags.moment import add_moment
from koordpolicy.cli.flags.paths import add_paths
from koordpolicy.cli.flags.stdin import add_stdin_filename
from koordpolicy.diagnostics.render import DEFAULT_LIMIT, RENDERERS


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "-o", "--output", choices=list(RENDERERS), default="text", help="format of the findings"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"show at most N findings, 0 for all (default: {DEFAULT_LIMIT})",
    )
    add_stdin_filename(parser)
    add_fix(parser)
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="tell of each field that nothing in a cluster acts on yet",
    )
    parser.add_argument("--strict", action="store_true", help="warnings fail the check too")
    add_moment(parser)
    add_max_cost(parser)
    parser.add_argument("--no-tests", action="store_true", help="leave out the policy tests")
    parser.add_argument("--no-proofs", action="store_true", help="leave out what Invariants say")
    parser.add_argument(
        "--explain-cost",
        action="store_true",
        help="show what decisions may cost, and which run for all nodes at once",
    )
    parser.add_argument(
        "--native",
        action="store_true",
        help="show which admission rules and profiles API servers can decide by themselves, and what keeps the others back",
    )


USAGE = Usage(
    _add, "exit code: 0 no errors, 1 findings, 2 could not run, or nothing was found to check", compiles=True
)
