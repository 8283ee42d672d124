"""The flag that says what decisions may cost at most, wherever they are made or checked."""

import argparse

from koordpolicy.language.cel.meter import COLUMN_SHARE, DEFAULT_BUDGET


def add_max_cost(parser: argparse.ArgumentParser) -> None:
    """Declare it."""
    parser.add_argument(
        "--max-cost-per-decision",
        metavar="UNITS",
        type=_units,
        default=DEFAULT_BUDGET,
        help="what a decision about one node or pod may cost, in units of 50 ns at most, and a bundle may lower;"
        f" one about all nodes may cost {COLUMN_SHARE} times that (default: {DEFAULT_BUDGET:,})",
    )


def _units(text: str) -> int:
    units = int(text.replace(",", "").replace("_", ""))
    if units < 1:
        raise argparse.ArgumentTypeError("a decision costs at least one unit")
    return units
