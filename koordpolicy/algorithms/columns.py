"""Columns: one NumPy array a fact, one element a node, all in the order of the node table."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from koordpolicy.model.quantity import INT64_MAX

Column: TypeAlias = NDArray[np.int64]
"""One integer amount or score a node."""

Mask: TypeAlias = NDArray[np.bool_]
"""One answer a node."""

Numbers: TypeAlias = NDArray[Any]
"""One whole number a node: int64, or doubles, which are quicker, where these are exact."""

EXACT: Final = 2**46
"""Amounts below it can be doubles: a hundred times as much is still exact."""

DIVIDES: Final = 2**53 - 1
"""Of whole numbers below it the quotient of doubles, rounded down, is the whole quotient: one that is not whole
lies further below the next whole number than rounding goes."""


class Amount(NamedTuple):
    """An amount on each node, doubles below `EXACT`. All lie within `low` and `high`, which need not be reached."""

    numbers: Numbers
    low: float
    high: float

    @property
    def nowhere(self) -> bool:
        """Whether it is known that no node has any."""
        return self.low == 0 == self.high

    def without(self, other: "Amount") -> Numbers:
        """What is left of it without the other, in an array of its own."""
        found: Numbers = np.subtract(*_alike(self.numbers, other.numbers))
        return found

    def increased(self, by: int, other: "Amount") -> tuple[Numbers, Numbers]:
        """So much more, in an array of its own, and another amount in numbers of the same kind.

        Both are amounts from 0; what would lie beyond int64 stops at its end.
        """
        mine, others = _alike(self.numbers, other.numbers)
        if self.high + by > INT64_MAX and mine.dtype.kind != "O":
            mine = np.minimum(mine.astype(np.int64, copy=False), INT64_MAX - by)
            others = others.astype(np.int64, copy=False)
        return np.add(mine, by), others

    def at_most(self, most: int) -> "Amount":
        """The same where it is no more than that, and that where it is."""
        return Amount(np.minimum(self.numbers, most), min(self.low, most), min(self.high, most))

    def exactly(self) -> "Amount":
        """The same in numbers that products and sums never outgrow, and that are slow."""
        return self._replace(numbers=self.numbers.astype(object))

    @property
    def divisors(self) -> tuple[Numbers, Mask | None]:
        """The amount to divide by, 1 where there is none, and the nodes that have some; None for every one."""
        if self.low > 0:
            return self.numbers, None
        lacks = self.numbers == 0
        if not np.count_nonzero(lacks):
            return self.numbers, None
        found = self.numbers.copy()
        found[lacks] = 1
        return found, ~lacks


def _alike(one: Numbers, other: Numbers) -> tuple[Numbers, Numbers]:
    if one.dtype == other.dtype or one.dtype.kind == "O" or other.dtype.kind == "O":
        return one, other
    return one.astype(np.int64, copy=False), other.astype(np.int64, copy=False)


Columns: TypeAlias = Mapping[str, Amount]
"""Amounts by resource name. There is one for every name; what no node has is `nowhere`."""


def total(numbers: Numbers) -> int:
    """The sum, however large."""
    most = max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
    return int(numbers.sum()) if most * len(numbers) <= INT64_MAX else sum(numbers.tolist())


def divide(numbers: Numbers, divisor: "Numbers | int") -> None:
    """Divide in place, rounding down; doubles by divisors of the same sign, all of them below `DIVIDES`."""
    if not isinstance(divisor, np.ndarray):
        if divisor == 1:
            return
    elif divisor.dtype != numbers.dtype:
        divisor = divisor.astype(numbers.dtype)
    if numbers.dtype.kind != "f":
        np.floor_divide(numbers, divisor, out=numbers)
        return
    if isinstance(divisor, int) and divisor & (divisor - 1) == 0:
        np.multiply(numbers, 1 / divisor, out=numbers)  # as exact for a power of two, and quicker
    else:
        np.divide(numbers, divisor, out=numbers)
    np.floor(numbers, out=numbers)
