"""Columns over a list of flat records, made when first asked for and kept up to date afterwards."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from koordpolicy.model.quantity import INT64_MAX, INT64_MIN
from koordpolicy.model.table.kinds import (
    ABSENT,
    DTYPES,
    MapFact,
    ScalarFact,
    Schema,
    Storage,
    Strings,
)

T = TypeVar("T")

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Record = Mapping[str, object]

MAX_KEYS: Final = 512
"""Columns that the keys of maps may have per store; beyond it the oldest is dropped. Each costs something whenever the
map of a row changes, and whoever makes pods chooses the keys that are asked for."""

_MANY: Final = 4
"""Rows from which on it pays to write them at once."""

_LOOSE: Final = 64
"""Writes beyond the number of rows after which the bounds of a column are measured again."""

_CLASSES: Final = {Storage.INT: int, Storage.DOUBLE: float, Storage.BOOL: bool, Storage.STRING: str}
_PRESENCE: Final = ScalarFact(Storage.BOOL)


class BeyondColumnsError(Exception):
    """A value that no column can hold, such as a point in time outside of int64 nanoseconds.

    The table keeps it in its records; columns that would have to show it cannot be asked for until it is gone.
    """


class Column:
    """A view of a column: one value a row, codes of `Strings` for strings.

    `absent` marks the rows without a value, whose entry in `values` means nothing; it is None when
    every row has one. All numbers in `values` lie within `low` and `high` (both 0 where the column
    holds no numbers; infinite when it may hold NaN). The arrays are the table's own: do not write,
    and do not keep them over a change of the table.
    """

    __slots__ = ("_data", "_made", "absent", "high", "low", "values")

    def __init__(
        self, values: Array, absent: Mask | None, low: float, high: float, data: "ColumnData | None" = None
    ) -> None:
        self.values = values
        self.absent = absent
        self.low = low
        self.high = high
        self._data = data
        self._made: dict[Callable[[Column], Any], Any] = {}

    def once(self, make: "Callable[[Column], T]") -> T:
        """What `make` gives of the column, made once for this view of it.

        Numbers may be replaced by others in place, within the bounds, as long as a view lasts; anything else that
        changes makes it another view.
        """
        found: T | None = self._made.get(make)
        if found is None:
            found = self._made[make] = make(self)
        return found

    @property
    def present(self) -> Mask | None:
        """The rows with a value; None when that is all of them."""
        return None if self.absent is None else ~self.absent

    @property
    def doubles(self) -> Array:
        """The numbers as the nearest doubles, 0 in rows without one, kept by the table from the first time on."""
        if self._data is None:
            return _doubles_of(self.values, self.absent)
        return self._data.doubles()[: len(self.values)]

    def pick(self, rows: Array) -> "Column":
        """Some rows of the column."""
        absent = None if self.absent is None else self.absent[rows]
        return Column(self.values[rows], absent, self.low, self.high)


def _doubles_of(values: Array, absent: Mask | None) -> Array:
    found = values.astype(np.float64)
    if absent is not None:
        found[absent] = 0.0
    return found


class ColumnData:
    """The growing arrays behind one column."""

    __slots__ = (
        "_beyond", "_cells", "_double_cells", "_doubles", "_encode", "_expected", "_flags", "_numbers", "_quick",
        "_strings", "_view", "absent", "high", "key", "low", "missing", "path", "values", "written",
    )  # fmt: skip

    def __init__(self, path: str, key: str | None, fact: ScalarFact, strings: Strings) -> None:
        self.path = path
        self.key = key
        self.values: Array = np.zeros(0, DTYPES[fact.storage])
        self._cells: Any = self.values.data  # a memoryview, of numbers of any class
        self._flags = bytearray()
        self.absent: Mask = np.zeros(0, np.bool_)
        self.missing = 0
        self.low: float = 0
        self.high: float = 0
        self.written = 0
        self._encode = fact.encode
        self._expected = _CLASSES[fact.storage]
        self._numbers = fact.storage in (Storage.INT, Storage.DOUBLE)
        self._quick = self._expected if self._numbers and fact.encode is None else None
        self._strings = strings if fact.storage is Storage.STRING else None
        self._doubles: Array | None = None
        self._double_cells: Any = None
        self._view: Column | None = None
        self._beyond: set[int] = set()

    def reserve(self, capacity: int) -> None:
        """Make room for so many rows; new ones count as present until they are set."""
        values = np.zeros(capacity, self.values.dtype)
        values[: len(self.values)] = self.values
        self.values = values
        # Single values are written and read much faster without the array's help; all look at the same octets.
        self._cells = values.data
        self._flags = bytearray(bytes(self._flags).ljust(capacity, b"\0"))
        self.absent = np.frombuffer(self._flags, np.bool_)
        self._forget_doubles()
        self._view = None

    def extract(self, record: Record) -> object:
        """What the record holds for this column, or ABSENT."""
        value = record.get(self.path, ABSENT)
        if self.key is None or value is ABSENT:
            return value
        if type(value) is not dict and not isinstance(value, Mapping):
            raise ValueError(f"`{self.path}`: {value!r} is no map")
        return value.get(self.key, ABSENT)

    def append(self, at: int, records: Sequence[Record]) -> ValueError | None:
        """Write many rows for the first time, from `at` on. Gives the first error, as `set` does."""
        self._view = None
        if len(records) >= _MANY and self._encode is None and self._append_plain(at, records):
            return None
        problems = [self.set(place, record, place == 0) for place, record in enumerate(records, at)]
        return next((problem for problem in problems if problem is not None), None)

    def _append_plain(self, at: int, records: Sequence[Record]) -> bool:
        """The same at once, where all values are there and of the plain class; else nothing happens."""
        try:
            values: list[Any] = [self.extract(record) for record in records]
            if set(map(type, values)) != {self._expected}:
                return False
            if self._strings is not None:
                values = list(map(self._strings.code, values))
            self.values[at : at + len(values)] = values
        except (ValueError, OverflowError):
            return False
        if self._doubles is not None:
            self._doubles[at : at + len(values)] = values
        if self._numbers:
            low, high = min(values), max(values)
            if any(value != value for value in values):
                low, high = -math.inf, math.inf
            self.low = min(low, self.low) if at else low
            self.high = max(high, self.high) if at else high
        return True

    def set(self, at: int, record: Record, first: bool) -> ValueError | None:
        """Write what the record says into a row; `first` says that the column has no other.

        A value that is not of the column's class is absent and gives an error; a number beyond int64 is the
        end of int64 that it lies beyond.
        """
        value = record.get(self.path)
        if self.key is not None:
            value = value.get(self.key) if type(value) is dict else None
        if type(value) is self._quick and not first and not self._flags[at]:
            # A number in place of another, within the bounds: nothing of a view changes but this number.
            number: float = value  # type: ignore[assignment]  # that is what `_quick` says
            if self.low <= number <= self.high:
                self._cells[at] = number
                self.written += 1
                if self._double_cells is not None:
                    self._double_cells[at] = number
                return None
        return self._set_any(at, record, first)

    def _set_any(self, at: int, record: Record, first: bool) -> ValueError | None:
        self._view = None
        self._beyond.discard(at)
        problem: ValueError | None = None
        try:
            value = self.extract(record)
            if value is not ABSENT:
                self._set_present(at, value, first)
                return None
        except ValueError as error:
            problem = error
        except BeyondColumnsError:
            self._beyond.add(at)
        if not self._flags[at]:
            self._flags[at] = 1
            self.missing += 1
        if first:
            self.low = self.high = 0
        # A filler within the bounds, so that they stay as narrow as the present values.
        self._cells[at] = self._expected(self.low) if self._strings is None else 0
        if self._double_cells is not None:
            self._double_cells[at] = 0.0
        return problem

    def _set_present(self, at: int, value: object, first: bool) -> None:
        if self._encode is not None:
            value = self._encode(value)
        if type(value) is not self._expected:
            if not isinstance(value, self._expected) or isinstance(value, bool):
                raise ValueError(f"`{self.path}`: {value!r} is no {self._expected.__name__}")
            value = self._expected(value)  # a subclass, such as a member of a StrEnum
        if self._strings is not None:
            value = self._strings.code(value)  # type: ignore[arg-type]
        elif self._expected is int and not INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]  # an int
            value = INT64_MIN if value < 0 else INT64_MAX  # type: ignore[operator]  # as above
        self._cells[at] = value
        if self._double_cells is not None:
            self._double_cells[at] = value
        if self._numbers:
            self._widen(value, first)  # type: ignore[arg-type]
        if self._flags[at]:
            self._flags[at] = 0
            self.missing -= 1

    def _widen(self, value: float, first: bool) -> None:
        if first:
            self.low = self.high = value
        self.written += 1
        if not self.low <= value <= self.high:
            if value != value:
                self.low, self.high = -math.inf, math.inf
            elif value < self.low:
                self.low = value
            else:
                self.high = value

    def fill(self, value: object, count: int) -> None:
        """Write one value into all rows that are present. Raises ValueError for one of another class."""
        if not count:
            return
        present = count - int(np.count_nonzero(self.absent[:count])) + len(self._beyond)
        if not present:
            return
        # Absent rows take it as their filler, so that the bounds are as narrow as can be.
        flags = bytes(self._flags[:count])
        missing = self.missing
        try:
            self._set_present(0, value, first=count == 1)
        except BeyondColumnsError:
            self._beyond.update(np.flatnonzero(~self.absent[:count]).tolist())
            self._view = None
            return
        self._flags[:count] = flags
        self.missing = missing
        for at in self._beyond:
            self.missing -= self._flags[at]
            self._flags[at] = 0
        self._beyond.clear()
        self.values[:count] = self.values[0]
        self._forget_doubles()
        self._view = None
        if self._numbers:
            self.low = self.high = self.values[0].item()
            self.written = 0

    def replace(self, numbers: Array, count: int, rows: Array | None) -> None:
        """Write a number into each of `count` rows, or into each of `rows`, all of which then have one."""
        present = self.absent[:count]
        if rows is None:
            self.values[:count] = numbers
            present[:] = False
        else:
            self.values[rows] = numbers
            present[rows] = False
        self._beyond.clear()
        self.missing = int(np.count_nonzero(present))
        if self.missing:
            # A filler within the bounds, so that they stay as narrow as the present values.
            known = np.flatnonzero(~present)
            self.values[np.flatnonzero(present)] = self.values[known[0]] if len(known) else 0
        self._forget_doubles()
        self._view = None
        self._tighten(count)

    def move(self, source: int, target: int) -> None:
        """Copy the last row over another one, and forget the last."""
        gone = self._flags[target]
        self._beyond.discard(target)
        if source in self._beyond:
            self._beyond.remove(source)
            if source != target:
                self._beyond.add(target)
        self._cells[target] = self._cells[source]
        self._forget_doubles()
        self._view = None
        self._flags[target] = self._flags[source]
        self.missing -= gone
        self._flags[source] = 0

    def view(self, count: int) -> Column:
        """The first `count` rows, which are all that there are. Raises BeyondColumnsError."""
        if self._beyond:
            raise BeyondColumnsError
        view = self._view
        outdated = self.written > count + _LOOSE
        if view is None or outdated:
            if outdated:
                self._tighten(count)
            absent = self.absent[:count] if self.missing else None
            view = self._view = Column(self.values[:count], absent, self.low, self.high, self)
        return view

    def doubles(self) -> Array:
        """All numbers, and room for more, as doubles."""
        if self._doubles is None:
            self._doubles = _doubles_of(self.values, self.absent if self.missing else None)
            self._double_cells = self._doubles.data
        return self._doubles

    def _forget_doubles(self) -> None:
        self._doubles = None
        self._double_cells = None

    def _tighten(self, count: int) -> None:
        """Bounds only grow with each write; now and then they are measured again."""
        self.written = 0
        if count and self._numbers:
            low, high = self.values[:count].min(), self.values[:count].max()
            if low == low and high == high:
                self.low, self.high = low.item(), high.item()


_Name: TypeAlias = tuple[str, str | None, bool]
"""Path, key within a map, and whether only the presence is meant."""


class ColumnStore:
    """A list of flat records and the columns over it. Records are read, never written."""

    __slots__ = ("_by_path", "_capacity", "_columns", "_keyed", "records", "schema", "strings")

    def __init__(self, schema: Schema, strings: Strings) -> None:
        self.schema = schema
        self.strings = strings
        self.records: list[Record] = []
        self._capacity = 64
        self._columns: dict[_Name, ColumnData] = {}
        self._by_path: dict[str, list[ColumnData]] = {}
        self._keyed = 0

    def column(self, path: str) -> Column:
        """The column of a fact of one value. Raises KeyError for a path that is no such fact."""
        found = self._columns.get((path, None, False))
        if found is None:
            fact = self.schema[path]
            if not isinstance(fact, ScalarFact):
                raise KeyError(f"`{path}` is not a fact of one value")
            found = self._make((path, None, False), fact)
        return found.view(len(self.records))

    def entry(self, path: str, key: str) -> Column:
        """The column of one key of a map. Raises KeyError for a path that is no map."""
        found = self._columns.get((path, key, False))
        if found is None:
            fact = self.schema[path]
            if not isinstance(fact, MapFact):
                raise KeyError(f"`{path}` is not a map")
            found = self._make((path, key, False), fact.values)
        return found.view(len(self.records))

    def presence(self, path: str) -> Column:
        """A column without values, whose `absent` marks the rows that lack the fact of any kind."""
        found = self._columns.get((path, None, True))
        if found is None:
            if path not in self.schema:
                raise KeyError(f"`{path}` is not a fact")
            found = self._make((path, None, True), _PRESENCE)
        return found.view(len(self.records))

    def _make(self, name: _Name, fact: ScalarFact) -> ColumnData:
        path, key, presence = name
        if key is not None:
            if self._keyed == MAX_KEYS:
                self._drop(next(known for known in self._columns if known[1] is not None))
            self._keyed += 1
        kind = _PresenceData if presence else ColumnData
        made = kind(path, key, fact, self.strings)
        made.reserve(self._capacity)
        self._columns[name] = made
        self._by_path.setdefault(path, []).append(made)
        raise_first((made.append(0, self.records),))
        return made

    def _drop(self, name: _Name) -> None:
        self._by_path[name[0]].remove(self._columns.pop(name))
        self._keyed -= 1

    def extend(self, records: Sequence[Record]) -> None:
        """More records at the end of the list. Raises ValueError once all are written."""
        begin = len(self.records)
        self.records.extend(records)
        if len(self.records) > self._capacity:
            self._capacity = 2 * len(self.records)
            for column in self._columns.values():
                column.reserve(self._capacity)
        raise_first([column.append(begin, records) for column in self._columns.values()])

    def changed(self, at: int, paths: Collection[str]) -> None:
        """The record has other values at these paths. Raises ValueError once all are written."""
        record = self.records[at]
        first = len(self.records) == 1
        by_path, problem = self._by_path, None
        for path in paths:
            columns = by_path.get(path)
            if columns is not None:
                for column in columns:
                    found = column.set(at, record, first)
                    if problem is None:
                        problem = found
        if problem is not None:
            raise problem

    def fill(self, path: str, value: object) -> None:
        """Set the value at a path in all records that have one there. Raises ValueError."""
        for column in self._by_path.get(path, ()):
            if not isinstance(column, _PresenceData):
                column.fill(value, len(self.records))
        changed = {path: value}
        for record in self.records:
            if path in record:
                record.update(changed)  # type: ignore[attr-defined]  # the table's own dicts

    def write(self, path: str, numbers: Array, rows: Array | None = None) -> None:
        """Set a fact of one number in all records, or in those with the numbers `rows`: much faster than one by one.

        The column's class is that of the fact: nanoseconds for times, which are not encoded here.
        """
        for column in self._by_path.get(path, ()):
            column.replace(numbers, len(self.records), rows)
        # Programs ask records too, of a few rows and of those that columns cannot hold: they must never stay behind.
        for record, number in zip(self._picked(rows), numbers.tolist(), strict=True):
            record[path] = number  # type: ignore[index]  # the table's own dicts

    def write_maps(
        self, paths: Collection[str], numbers: Mapping[str, Array], rows: Array | None = None
    ) -> None:
        """Set maps of one number a key in the same manner: all of them get the same keys, and those of a record the same numbers."""
        picked: list[Any] = [*self._picked(rows)]  # the table's own dicts
        maps: list[dict[str, float]] = [{} for _ in picked]
        for key, written in numbers.items():
            for made, number in zip(maps, written.tolist(), strict=True):
                made[key] = number
        for path in paths:
            for record, made in zip(picked, maps, strict=True):
                record[path] = made
        count = len(self.records)
        for column in (one for path in paths for one in self._by_path.get(path, ())):
            of_these = column.absent[slice(count) if rows is None else rows]
            if column.key is not None and column.key in numbers:
                column.replace(numbers[column.key], count, rows)
            elif of_these.any() if column.key is None else not of_these.all():
                for at in range(count) if rows is None else rows.tolist():
                    column.set(at, self.records[at], count == 1)

    def _picked(self, rows: Array | None) -> Iterable[Record]:
        return self.records if rows is None else [self.records[at] for at in rows.tolist()]

    def remove(self, at: int) -> None:
        """Drop a record; the last one takes its place."""
        last = len(self.records) - 1
        for column in self._columns.values():
            column.move(last, at)
        self.records[at] = self.records[last]
        self.records.pop()

    def restart(self) -> None:
        """Drop all records and columns; columns are made again when asked for."""
        self.records = []
        self._columns.clear()
        self._by_path.clear()
        self._keyed = 0


def raise_first(problems: Iterable[ValueError | None]) -> None:
    """Let all writes happen, then raise the first problem, if any."""
    found = [problem for problem in problems if problem is not None]
    if found:
        raise found[0]


class _PresenceData(ColumnData):
    """A column whose values mean nothing."""

    __slots__ = ()

    def replace(self, numbers: Array, count: int, rows: Array | None) -> None:
        super().replace(np.zeros(len(numbers), np.bool_), count, rows)

    def extract(self, record: Record) -> object:
        return True if self.path in record else ABSENT

    def set(self, at: int, record: Record, first: bool) -> ValueError | None:
        # Nothing to do for a row that has the fact as before, or lacks it as before.
        return self._set_any(at, record, first) if (self.path in record) == self._flags[at] else None
