"""The flags of `koordpolicy test`."""

import argparse

from koordpolicy.cli.command import FINDINGS, TESTS_FAILED, Usage
from koordpolicy.cli.flags.paths import add_paths

_MOST_MUTANTS = 300


_MUTATION_TIME = 300


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "-k",
        "--filter",
        metavar="TEXT",
        help="run the cases whose name, or whose test's name, has this text or pattern (`*`, `?`)",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "junit", "lcov", "cobertura"),
        default="text",
        help="format of the results",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="list the cases that passed too")
    parser.add_argument(
        "--coverage", action="store_true", help="show coverage by kind, and the branches that no case takes"
    )
    parser.add_argument(
        "--mutate",
        action="store_true",
        help="change the policies in one place at a time, and list the changes that no test notices",
    )
    parser.add_argument(
        "--max-mutants",
        type=int,
        metavar="N",
        default=_MOST_MUTANTS,
        help=f"changes to try at most; a fixed sample where there are more (default: {_MOST_MUTANTS})",
    )
    parser.add_argument(
        "--mutation-time",
        type=int,
        metavar="SECONDS",
        default=_MUTATION_TIME,
        help=f"begin no more changes after that time (default: {_MUTATION_TIME})",
    )
    parser.add_argument(
        "--min-mutation-score",
        type=float,
        metavar="PERCENT",
        help=f"with `--mutate`: exit with {FINDINGS} where tests notice a smaller share of the changes",
    )
    parser.add_argument(
        "--update", action="store_true", help="write the actual values into the tests where they differ"
    )
    parser.add_argument(
        "--referee",
        action="store_true",
        help="ask cel-python too, on the inputs of the tests, and report where it disagrees",
    )


USAGE = Usage(
    _add,
    f"exit code: 0 all passed, {TESTS_FAILED} some failed, 1 other findings, 2 could not run",
    compiles=True,
)
