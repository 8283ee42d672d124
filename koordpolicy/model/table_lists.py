"""A list fact of all rows: its elements one after another, each list a segment of them.

A list that changes is written anew behind the others, and its old segment is dead until so much is
dead that everything is moved together. So a change costs the length of that list, on average.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from koordpolicy.model.table_columns import Array, ColumnStore, Mask, Record
from koordpolicy.model.table_kinds import ABSENT, ELEMENT, ListFact, Strings

_SLACK: Final = 256
"""Dead elements that are not worth tidying up."""

_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Segments:
    """Which elements belong to which row.

    Segment k begins at element `starts[k]`, ends where the next begins, is never empty, and belongs
    to row `rows[k]`, or to none (-1) when it is dead. `owners` names the row of each element, 0 for
    dead ones, which `live` (None: all) tells apart. `lengths` has one number a row; `absent` marks
    the rows without the fact (None: no row). Read-only, and valid until the table changes.
    """

    starts: Array
    rows: Array
    owners: Array
    live: Mask | None
    lengths: Array
    absent: Mask | None

    @property
    def size(self) -> int:
        """How many elements there are, dead ones included."""
        return len(self.owners)


class Growing:
    """An array that grows at its end."""

    __slots__ = ("_array", "count")

    def __init__(self, dtype: Any) -> None:
        self._array: Array = np.zeros(64, dtype)
        self.count = 0

    def extend(self, value: int, times: int) -> None:
        """Append the value so many times."""
        end = self.count + times
        if end > len(self._array):
            wider = np.zeros(2 * end, self._array.dtype)
            wider[: self.count] = self._array[: self.count]
            self._array = wider
        self._array[self.count : end] = value
        self.count = end

    @property
    def view(self) -> Array:
        """What there is."""
        return self._array[: self.count]


class ListData:
    """Segments and element columns behind one list fact."""

    __slots__ = (
        "_absent", "_dead", "_lengths", "_live", "_missing", "_owners", "_rows", "_segment_of", "_starts",
        "elements", "path",
    )  # fmt: skip

    def __init__(self, path: str, fact: ListFact, strings: Strings, records: Sequence[Record]) -> None:
        self.path = path
        self.elements = ColumnStore(fact.elements, strings)
        self._segment_of = Growing(np.int64)
        self._lengths = Growing(np.int64)
        self._absent = Growing(np.bool_)
        self._missing = 0
        self._clear_elements()
        for record in records:
            self.append(record)

    def _clear_elements(self) -> None:
        self._starts = Growing(np.int64)
        self._rows = Growing(np.int64)
        self._owners = Growing(np.int64)
        self._live = Growing(np.bool_)
        self._dead = 0

    def append(self, record: Record) -> None:
        """A row more."""
        self._segment_of.extend(_NONE, 1)
        self._lengths.extend(0, 1)
        self._absent.extend(False, 1)
        self.set(self._lengths.count - 1, record)

    def set(self, at: int, record: Record) -> None:
        """Write a row's list anew. Raises ValueError when the fact is no list."""
        self._forget(at)
        values = record.get(self.path, ABSENT)
        if self._absent.view[at] != (values is ABSENT):
            self._absent.view[at] = values is ABSENT
            self._missing += 1 if values is ABSENT else -1
        if values is ABSENT:
            return
        if not isinstance(values, (list, tuple)):
            raise ValueError(f"`{self.path}`: {values!r} is no list")  # noqa: TRY004 one class for all misfits
        self._write(at, [_record_of(value) for value in values])
        if self._dead > _SLACK + self._owners.count // 2:
            self._tidy()

    def _write(self, at: int, elements: Sequence[Record]) -> None:
        self._lengths.view[at] = len(elements)
        if not elements:
            return
        self._segment_of.view[at] = self._starts.count
        self._starts.extend(self._owners.count, 1)
        self._rows.extend(at, 1)
        self._owners.extend(at, len(elements))
        self._live.extend(True, len(elements))
        self.elements.extend(elements)

    def _forget(self, at: int) -> None:
        segment = self._segment_of.view[at]
        if segment == _NONE:
            return
        part = self._elements_of(at)
        self._rows.view[segment] = _NONE
        self._owners.view[part] = 0
        self._live.view[part] = False
        self._dead += int(self._lengths.view[at])
        self._segment_of.view[at] = _NONE
        self._lengths.view[at] = 0

    def _elements_of(self, at: int) -> slice:
        start = int(self._starts.view[self._segment_of.view[at]])
        return slice(start, start + int(self._lengths.view[at]))

    def remove(self, at: int) -> None:
        """The last row takes the place of row `at`."""
        self._forget(at)
        last = self._lengths.count - 1
        self._missing -= int(self._absent.view[at])
        if at != last:
            segment = self._segment_of.view[last]
            if segment != _NONE:
                self._rows.view[segment] = at
                self._owners.view[self._elements_of(last)] = at
            for column in (self._segment_of, self._lengths, self._absent):
                column.view[at] = column.view[last]
        for column in (self._segment_of, self._lengths, self._absent):
            column.count = last
        if last == 0:  # dead elements need a row to point to
            self._clear_elements()
            self.elements.restart()

    def _tidy(self) -> None:
        """Move the live segments together, in the order of rows."""
        records = self.elements.records
        lists = [
            records[self._elements_of(at)] if self._lengths.view[at] else []
            for at in range(self._lengths.count)
        ]
        self._clear_elements()
        self._segment_of.view[:] = _NONE
        self.elements.restart()
        for at, elements in enumerate(lists):
            self._write(at, elements)

    def segments(self) -> Segments:
        """The segments as they are now."""
        return Segments(
            self._starts.view, self._rows.view, self._owners.view,
            self._live.view if self._dead else None,
            self._lengths.view, self._absent.view if self._missing else None,
        )  # fmt: skip


def _record_of(value: object) -> Record:
    return value if isinstance(value, Mapping) else {ELEMENT: value}
