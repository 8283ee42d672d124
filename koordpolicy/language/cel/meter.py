"""What one evaluation may spend, and how it is charged.

A unit stands for 50 ns of work at most, so that the default budget is 50 ms. What an expression does once is
bounded by its own length and is not charged; loops are charged by their steps, and whatever grows with its operands
(texts and lists made, searched or compared, patterns, sorting) by their sizes, before the work is done. What is
made is charged by about 40 bytes a unit, and single values are capped (see `library.limits`): that bounds memory.
The prices are those of the estimate (see `cost`), of which the budget of a decision is checked before it runs.
"""

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from koordpolicy.language.cel.errors import CostExceeded

DEFAULT_BUDGET: Final = 1_000_000
"""Units of one decision about one node or pod, where neither the operator nor the bundle sets another."""

COLUMN_SHARE: Final = 100
"""How many budgets one evaluation of a decision about all nodes may spend altogether."""

Meter: TypeAlias = list[Any]
"""Units left, and the budget."""

Metered: TypeAlias = Callable[..., Any]
"""A function that takes the meter before its other arguments."""

UNMETERED: Final[Meter] = [float("inf"), float("inf")]
"""Never runs out: for values that are known to be small."""


def meter_of(budget: int) -> Meter:
    """A meter with a whole budget."""
    return [budget, budget]


def charge(meter: Meter, units: int) -> None:
    """Spend units. Raises CostExceeded when there are not so many left."""
    meter[0] -= units
    if meter[0] < 0:
        stop(meter)


def stop(meter: Meter) -> NoReturn:
    """Raise the error of a meter that has run out."""
    raise CostExceeded(meter[1])
