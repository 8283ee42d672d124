"""All nodes at once: a row a node, a NumPy array a fact.

Rows are flat records (dotted path to value, an absent path is missing data) and stay at hand as
such. A fact becomes a column when a program first asks for it, and from then on each change of a row
is written to its columns too, at a cost that depends on what was touched alone. A removed row's
place is taken by the last row, so columns are always dense and a row's number can change;
`touched_since` reports the row that moved like one that changed.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import repeat
from typing import Final

import numpy as np

from koordpolicy.model.table.columns import Array, Record
from koordpolicy.model.table.kinds import Schema, Strings
from koordpolicy.model.table.lists import RecordStore, Segments

_FEW: Final = 64
"""Rows whose names are compared, where putting all names in order would cost more."""

_JOURNAL: Final = 65_536
"""So many of the latest changes, at least, are remembered one by one."""


_EVERY: Final = -1
"""Stands in the journal for a change of all rows; who asks about one from before is told of every row."""


Mark = tuple[int, dict[str, int]]
"""A version of a table, with its stamps."""


class NodeTable:
    """Named rows of facts. `schema` says what stands at each path; others may stand there too, and
    are rows' own. `version` grows with every change; `strings` numbers the strings of all columns.

    Changes are made from one thread; views of columns are valid until the next change. A value that
    is not of its column's class raises ValueError once, and is missing data from then on.
    """

    __slots__ = (
        "__weakref__", "_first", "_journal", "_names", "_places", "_rows", "_shaped", "_stamps", "_store", "_told",
        "_whole", "column", "entry", "presence", "schema", "strings",
    )  # fmt: skip

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.strings = Strings()
        self._store = RecordStore(schema, self.strings)
        # The store's own methods: each is called many times a decision, and one that only called them would show.
        self.column: Final = self._store.column
        """A fact of one value, by path. Raises KeyError for a path that is no such fact."""
        self.entry: Final = self._store.entry
        """One key of a map such as `labels`, by path and key. Raises KeyError for a path that is no map."""
        self.presence: Final = self._store.presence
        """Only whether the rows have the fact at a path, whatever its kind. Raises KeyError."""
        self._names: list[str] = []
        self._rows: dict[str, int] = {}
        self._places: Array | None = None
        self._journal: list[int] = []
        self._first = 0
        self._stamps: dict[str, int] = {}
        self._shaped = 0
        self._whole = 0
        self._told = 0

    # --- rows -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each row."""
        return tuple(self._names)

    def name(self, row: int) -> str:
        """The name of a row."""
        return self._names[row]

    def named(self, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[str]:
        """The names of rows."""
        names = self._names
        return [names[row] for row in rows.tolist()]

    def first_by_name(self, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> int:
        """The place among rows, of which there is one at least, of the one whose name comes first."""
        if self._places is None:
            if len(rows) <= _FEW:
                names = self.named(rows)
                return names.index(min(names))
            places = np.empty(len(self._names), np.int64)
            places[sorted(range(len(self._names)), key=self._names.__getitem__)] = np.arange(len(self._names))
            self._places = places
        return int(self._places[rows].argmin())

    def index(self, name: str) -> int:
        """The number of a named row. Raises KeyError."""
        return self._rows[name]

    def row(self, index: int) -> Record:
        """The facts of a row as they are now: path to value. Read-only."""
        return self._store.records[index]

    def put(self, name: str, facts: Mapping[str, object]) -> int:
        """Add a row, or replace all facts of one; its number.

        Raises ValueError for a value of another class than its column's.
        """
        at = self._rows.get(name)
        if at is not None:
            known = self._store.records[at]
            self.update(name, facts, absent=[path for path in known if path not in facts])
            return at
        at = self._rows[name] = len(self._names)
        self._names.append(name)
        record = dict(facts)
        self._reshape(at)
        self._store.extend((record,))
        return at

    def update(self, name: str, changes: Mapping[str, object], absent: Collection[str] = ()) -> None:
        """Set some facts of a row, and forget those at the paths in `absent`.

        Raises KeyError for an unknown row, ValueError for a value of another class than its column's.
        """
        at = self._rows[name]
        record = self._store.records[at]
        assert isinstance(record, dict)
        record.update(changes)
        paths: Collection[str] = changes
        if absent:
            paths = [*changes, *absent]
            for path in paths[len(changes) :]:
                record.pop(path, None)
        version = self._touch(at)
        stamps = self._stamps
        for path in paths:
            stamps[path] = version
        self._store.changed(at, paths)

    def fill(self, path: str, value: object) -> None:
        """Set a fact of one value in all rows that have it, much faster than row by row.

        Raises ValueError for a value of another class than the column's.
        """
        self._store.fill(path, value)
        self._written(path, None)

    def write(self, path: str, numbers: Array, rows: Array | None = None) -> None:
        """Set a fact of one number in all rows, or in those with the numbers `rows`, much faster than row by row."""
        self._store.write(path, numbers, rows)
        self._written(path, rows)

    def write_maps(
        self, paths: Collection[str], numbers: Mapping[str, Array], rows: Array | None = None
    ) -> None:
        """The same of maps with one number a key; all rows get the same keys, and all maps of a row the same numbers."""
        self._store.write_maps(paths, numbers, rows)
        for path in paths:
            self._written(path, rows)

    def write_elements(self, path: str, fact: str, numbers: Array, elements: Array) -> None:
        """The same as `write` of a fact of elements of a list fact, by their places among `elements(path)`."""
        self._store.elements(path).write(fact, numbers, elements)
        self._written(path, None)

    def _written(self, path: str, rows: Array | None) -> None:
        if rows is None or len(rows) == len(self._names):
            self._journal.append(_EVERY)
            self._whole = self._version
        else:
            self._journal.extend(rows.tolist())
        self._trim()
        self._stamps[path] = self._version

    def remove(self, name: str) -> None:
        """Drop a row; the last row takes its number. Raises KeyError for an unknown row."""
        at = self._rows.pop(name)
        last = self._names.pop()
        self._store.remove(at)
        if last != name:
            self._names[at] = last
            self._rows[last] = at
        self._reshape(at)

    def _touch(self, at: int) -> int:
        """Note that a row changes; the version from then on."""
        self._journal.append(at)
        self._trim()
        return self._version

    def _reshape(self, at: int) -> None:
        """Note that a row comes or goes. What changed before that does not matter any more."""
        self._shaped = self._touch(at)
        self._places = None
        self._stamps.clear()

    def _trim(self) -> None:
        """Forget changes of long ago, once they are as many again as those that are remembered."""
        if len(self._journal) >= 2 * _JOURNAL:
            self._first += len(self._journal) - _JOURNAL
            del self._journal[:-_JOURNAL]

    # --- versions -------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """How many changes there have been."""
        self._told = self._version
        return self._told

    @property
    def _version(self) -> int:
        return self._first + len(self._journal)

    def mark(self) -> Mark:
        """The present, to which `unmark` comes back."""
        return self._version, dict(self._stamps)

    def unmark(self, mark: Mark) -> None:
        """All rows are again as they were at a mark, and none came or went: it is as if nothing had changed.

        Where somebody was told a version from in between, what was touched meanwhile counts as touched.
        """
        version, stamps = mark
        if self._told <= version and version >= self._first:
            del self._journal[version - self._first :]
            self._stamps = stamps

    def touched_since(self, version: int) -> Array | None:
        """The rows, in ascending order, that changed, moved or appeared after a version.

        None when that is too long ago to know: then every row may have changed. Rows that are gone
        show only in the table's length.
        """
        if version < self._first:
            return None
        count = len(self._names)
        if self._whole > version:
            return np.arange(count)
        touched = set(self._journal[version - self._first :])
        if self._shaped > version:
            touched = {row for row in touched if row < count}
        return np.array(sorted(touched), dtype=np.int64)

    def changed_since(self, version: int) -> frozenset[str] | None:
        """The facts that changed in some row after a version; None when rows came or went."""
        if self._shaped > version:
            return None
        return frozenset([path for path, stamp in self._stamps.items() if stamp > version])

    def stamp(self, paths: Iterable[str]) -> int:
        """The version in which one of these facts last changed anywhere, or rows came or went."""
        found = max(self._shaped, max(map(self._stamps.get, paths, repeat(0)), default=0))
        self._told = max(self._told, found)
        return found

    # --- columns --------------------------------------------------------------------------------

    def segments(self, path: str) -> Segments:
        """The lists of all rows as segments of one sequence. Raises KeyError for no list."""
        return self._store.segments(path)

    def elements(self, path: str) -> RecordStore:
        """The columns over the elements of a list fact, in the order of its segments; lists within
        them have segments and elements of their own. Raises KeyError for a path that is no list.
        """
        return self._store.elements(path)
