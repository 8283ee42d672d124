"""The flags of `koordpolicy prove`."""

import argparse

from koordpolicy.cli.command import GAVE_UP, Usage

_INPUTS = 6_000
_WORK = 3_000_000


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="names of Invariants (default: all)")
    parser.add_argument(
        "-p",
        "--policies",
        action="append",
        default=[],
        metavar="PATH",
        help="where the policies stand; may be repeated (default: .)",
    )
    parser.add_argument(
        "--since",
        metavar="OLD",
        help="a revision as Git names it, or a directory: ask Invariants that speak of `before`, too",
    )
    parser.add_argument(
        "--inputs",
        type=int,
        default=_INPUTS,
        metavar="N",
        help=f"inputs to try for each (default: {_INPUTS})",
    )
    parser.add_argument(
        "--work",
        type=int,
        default=_WORK,
        metavar="N",
        help=f"units of work of the solver for each (default: {_WORK})",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format of the result"
    )


USAGE = Usage(
    _add,
    f"exit code: 0 all proved, 1 one is violated, 2 could not run, {GAVE_UP} one is neither proved nor violated",
    compiles=True,
)
