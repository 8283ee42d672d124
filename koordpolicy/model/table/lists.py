"""A list fact of all rows: its elements one after another, each list a segment of them.

A list that changes is written anew behind the others, and its old segment is dead until so much is
dead that everything is moved together. So a change costs the length of that list, on average.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from koordpolicy.model.table.columns import Array, ColumnStore, Mask, Record, raise_first
from koordpolicy.model.table.kinds import ABSENT, ELEMENT, ListFact, Schema, Strings

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

    def __init__(self, path: str, fact: ListFact, strings: Strings) -> None:
        self.path = path
        self.elements = RecordStore(fact.elements, strings)
        self._segment_of = Growing(np.int64)
        self._lengths = Growing(np.int64)
        self._absent = Growing(np.bool_)
        self._missing = 0
        self._clear_elements()

    def _clear_elements(self) -> None:
        self._starts = Growing(np.int64)
        self._rows = Growing(np.int64)
        self._owners = Growing(np.int64)
        self._live = Growing(np.bool_)
        self._dead = 0

    def append(self, record: Record) -> ValueError | None:
        """A row more; the error as `set`."""
        self._segment_of.extend(_NONE, 1)
        self._lengths.extend(0, 1)
        self._absent.extend(False, 1)
        return self.set(self._lengths.count - 1, record)

    def set(self, at: int, record: Record) -> ValueError | None:
        """Write a row's list anew. What is no list counts as absent and gives an error."""
        self._forget(at)
        values = record.get(self.path, ABSENT)
        missing = not isinstance(values, (list, tuple))
        if self._absent.view[at] != missing:
            self._absent.view[at] = missing
            self._missing += 1 if missing else -1
        if isinstance(values, (list, tuple)):
            try:
                self._write(at, [_record_of(value) for value in values])
            except ValueError as error:  # of one fact of one element; all the rest is written
                return error
            if self._dead > _SLACK + self._owners.count // 2:
                self._tidy()
            return None
        return None if values is ABSENT else ValueError(f"`{self.path}`: {values!r} is no list")

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


class RecordStore(ColumnStore):
    """Flat records with the columns over them and over the elements of their lists."""

    __slots__ = ("_lists",)

    def __init__(self, schema: Schema, strings: Strings) -> None:
        super().__init__(schema, strings)
        self._lists: dict[str, ListData] = {}

    def segments(self, path: str) -> Segments:
        """The lists of all records as segments of one sequence. Raises KeyError for no list."""
        return self._list(path).segments()

    def elements(self, path: str) -> "RecordStore":
        """The columns over the elements of a list fact, in the order of its segments.

        Raises KeyError for a path that is no list.
        """
        return self._list(path).elements

    def _list(self, path: str) -> ListData:
        made = self._lists.get(path)
        if made is None:
            fact = self.schema[path]
            if not isinstance(fact, ListFact):
                raise KeyError(f"`{path}` is not a list")
            made = self._lists[path] = ListData(path, fact, self.strings)
            raise_first(made.append(record) for record in self.records)
        return made

    def extend(self, records: Sequence[Record]) -> None:
        """More records at the end of the list. Raises ValueError once all are written."""
        problems = [made.append(record) for made in self._lists.values() for record in records]
        super().extend(records)
        raise_first(problems)

    def changed(self, at: int, paths: Collection[str]) -> None:
        """The record has other values at these paths. Raises ValueError once all are written."""
        if not self._lists:
            super().changed(at, paths)
            return
        record = self.records[at]
        problems = [self._lists[path].set(at, record) for path in paths if path in self._lists]
        super().changed(at, paths)
        raise_first(problems)

    def remove(self, at: int) -> None:
        """Drop a record; the last one takes its place."""
        for made in self._lists.values():
            made.remove(at)
        super().remove(at)

    def restart(self) -> None:
        """Drop all records and columns; columns are made again when asked for."""
        self._lists.clear()
        super().restart()


def _record_of(value: object) -> Record:
    return value if isinstance(value, Mapping) else {ELEMENT: value}
