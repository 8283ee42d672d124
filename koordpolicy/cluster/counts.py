"""Numbers by row of the node table, kept as rows come, go and move."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column

_FEW: Final = 48
"""So many rows are kept one by one; more become an array of all rows."""


class RowCounts:
    """A whole number for each row, 0 unless said: a few of them in a dict, many as an array."""

    __slots__ = ("_dense", "_few")

    def __init__(self) -> None:
        self._few: dict[int, int] = {}
        self._dense: Column | None = None

    def add(self, row: int, by: int) -> int:
        """Add to a row's number; what it is then."""
        if self._dense is None:
            found = self._few.get(row, 0) + by
            if found:
                self._few[row] = found
                if len(self._few) > _FEW:
                    self._become_dense()
            else:
                self._few.pop(row, None)
            return found
        dense = self._room(row + 1)
        dense[row] += by
        return int(dense[row])

    def put(self, row: int, value: int) -> None:
        """Set a row's number."""
        self.add(row, value - self.get(row))

    def get(self, row: int) -> int:
        """A row's number."""
        if self._dense is None:
            return self._few.get(row, 0)
        return int(self._dense[row]) if row < len(self._dense) else 0

    def add_all(self, other: "RowCounts", times: int = 1) -> None:
        """Add another's numbers, so many times, row by row."""
        for row, value in other.items():
            self.add(row, times * value)

    def add_to(self, numbers: Column, times: int = 1) -> None:
        """Add the numbers, so many times, to those of an array with an element a row."""
        if self._dense is not None:
            numbers += times * self._room(len(numbers))[: len(numbers)]
            return
        for row, value in self._few.items():
            numbers[row] += times * value

    def array(self, count: int) -> Column:
        """The numbers of so many rows. Not to be written to; valid until the next change."""
        if self._dense is not None:
            return self._room(count)[:count]
        found = np.zeros(count, np.int64)
        for row, value in self._few.items():
            found[row] = value
        return found

    def rows(self) -> Iterator[int]:
        """The rows that are not 0."""
        if self._dense is None:
            return iter(self._few)
        return iter(np.flatnonzero(self._dense).tolist())

    def items(self) -> Iterable[tuple[int, int]]:
        """The rows that are not 0, with their numbers."""
        if self._dense is None:
            return self._few.items()
        rows = np.flatnonzero(self._dense)
        return zip(rows.tolist(), self._dense[rows].tolist(), strict=True)

    def drop(self, row: int, last: int) -> None:
        """A row is gone, and the last one has taken its number."""
        if self._dense is None:
            moved = self._few.pop(last, 0)
            if row != last:
                self._few.pop(row, None)
                if moved:
                    self._few[row] = moved
            return
        if last < len(self._dense):
            self._dense[row] = self._dense[last]
            self._dense[last] = 0
        elif row < len(self._dense):
            self._dense[row] = 0

    def __bool__(self) -> bool:
        return bool(self._few) if self._dense is None else bool(self._dense.any())

    def _become_dense(self) -> None:
        few, self._few = self._few, {}
        self._dense = np.zeros(2 * (max(few, default=0) + 1), np.int64)
        for row, value in few.items():
            self._dense[row] = value

    def _room(self, count: int) -> Column:
        assert self._dense is not None
        if len(self._dense) < count:
            grown = np.zeros(max(count, 2 * len(self._dense)), np.int64)
            grown[: len(self._dense)] = self._dense
            self._dense = grown
        return self._dense
