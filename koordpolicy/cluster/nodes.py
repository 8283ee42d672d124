"""Nodes as plugins see them: columns over all of them, or over a few."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import EXACT, Amount, Column, Columns, Mask
from koordpolicy.algorithms.scarce import kinds_of
from koordpolicy.cluster.state import ClusterState
from koordpolicy.language.cel.lower.columns import table_schema
from koordpolicy.language.facts import FACTS
from koordpolicy.model.distinct import distinct
from koordpolicy.model.node import Taint
from koordpolicy.model.reading import Amounts
from koordpolicy.model.table import Column as TableColumn
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.access_path import AccessPath, access_path
from koordpolicy.model.table.kinds import ScalarFact, Schema, Storage, Strings

Rows = NDArray[np.int64]
"""Numbers of rows, ascending."""

TAINTS: Final = "scheduler/taints"
"""Where a row keeps the set of its taints, as text: no fact of the language, but a column of ours."""


KINDS: Final = "scheduler/kinds"
"""Where a row keeps the kinds of resources that the node has, as text, in the same manner."""


def node_schema() -> Schema:
    """The columns of the scheduler's table: the facts of nodes, and its own."""
    return {
        **table_schema(FACTS, "node"),
        KINDS: ScalarFact(Storage.STRING),
        TAINTS: ScalarFact(Storage.STRING),
    }


def taint_text(taints: Sequence[Taint]) -> str:
    """A set of taints as text, empty for none; equal texts for equal sets in equal order."""
    return json.dumps([[one.key, one.effect, one.value] for one in taints]) if taints else ""


@lru_cache(maxsize=4096)
def taints_of(text: str) -> tuple[Taint, ...]:
    """The taints behind a text of `taint_text`."""
    return tuple(Taint(*one) for one in json.loads(text)) if text else ()


def kinds_text(amounts: Amounts) -> str:
    """The kinds of resources of which there is something, as text; equal texts for equal sets."""
    return "\n".join(sorted(kinds_of(amounts)))


@lru_cache(maxsize=4096)
def kinds_in(text: str) -> frozenset[str]:
    """The kinds behind a text of `kinds_text`."""
    return frozenset(text.split("\n")) if text else frozenset()


class NodeView:
    """The nodes of a table, or those of some rows, column by column.

    Valid until the table changes. `state` is what else there is, for those who look beyond nodes.
    """

    __slots__ = ("_amounts", "_rows", "_state", "_table", "count")

    def __init__(self, table: NodeTable, rows: Rows | None = None, state: ClusterState | None = None) -> None:
        self._table = table
        self._state = state
        self._rows = rows
        self._amounts: dict[str, _AmountColumns] = {}
        self.count = len(table) if rows is None else len(rows)

    @property
    def state(self) -> ClusterState:
        """What there is beside nodes, by row of the whole table."""
        assert self._state is not None, "a plugin that looks beyond nodes is asked with the cluster's state"
        return self._state

    @property
    def total(self) -> int:
        """How many nodes there are, whichever are looked at."""
        return len(self._table)

    def whole(self) -> "NodeView":
        """All the nodes."""
        return self if self._rows is None else NodeView(self._table, None, self._state)

    def some(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of values for all nodes, those for the nodes that are looked at."""
        return values if self._rows is None else values[self._rows]

    def one(self, at: int) -> Mapping[str, Any]:
        """The facts of the node at a place among those that are looked at."""
        return self._table.row(at if self._rows is None else int(self._rows[at]))

    def place_of(self, name: str) -> int | None:
        """The place of a node among those that are looked at; None where it is not."""
        if name not in self._table:
            return None
        row = self._table.index(name)
        if self._rows is None:
            return row
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None

    @property
    def few(self) -> "Sequence[Mapping[str, Any]] | None":
        """The facts of each node where they are to be looked at one by one; else None."""
        if self._rows is None or access_path(len(self._rows)) is not AccessPath.ONE_BY_ONE:
            return None
        return [self._table.row(row) for row in self._rows.tolist()]

    def numbers(self, path: str) -> Column:
        """A fact that every node has, as int64."""
        return self.some(self._table.column(path).values)

    def flagged(self, path: str) -> Mask | None:
        """Where a fact that every node has is true; None when it is true of no node at all."""
        column = self._table.column(path)
        return self.some(column.values) if column.once(_any) else None

    def counts(self, path: str) -> Amount:
        """A fact that every node has, as an amount."""
        return _amount_of(self._table.column(path), self._rows)

    def amounts(self, path: str) -> Columns:
        """A map from resource to amount; a resource that a node lacks is 0 there."""
        found = self._amounts.get(path)
        if found is None:
            found = self._amounts[path] = _AmountColumns(self._table, path, self._rows)
        return found

    def amount(self, path: str, resource: str) -> Column:
        """The amount of one resource on each node."""
        numbers = _amount_of(self._table.entry(path, resource), self._rows).numbers
        return numbers.astype(np.int64, copy=False)

    def label(self, key: str) -> tuple[NDArray[np.int32], Mask | None]:
        """The value of a label on each node as the number of its text, and the nodes without it."""
        column = self._table.entry("labels", key)
        return self.some(column.values), None if column.absent is None else self.some(column.absent)

    @property
    def strings(self) -> Strings:
        """The numbers of texts."""
        return self._table.strings

    def names(self) -> NDArray[np.int32]:
        """The names of the nodes as numbers of texts."""
        return self.some(self._table.column("name").values)

    def name(self, at: int) -> str:
        """The name of the node at a place among those that are looked at."""
        return self._table.name(at if self._rows is None else int(self._rows[at]))

    def taints(self) -> NDArray[np.int32]:
        """The taints of the nodes as numbers of texts; 0 for none."""
        return self.some(self._table.column(TAINTS).values)

    @property
    def tainted(self) -> Sequence[int]:
        """The different sets of taints that the nodes have, as numbers of texts; empty where none has any."""
        column = self._table.column(TAINTS)
        return column.once(_codes) if self._rows is None else _codes(column.pick(self._rows))

    def kinds(self) -> NDArray[np.int32]:
        """The kinds of resources that the nodes have, as numbers of texts; 0 for none."""
        return self.some(self._table.column(KINDS).values)

    def doubles(self, path: str, otherwise: float) -> "NDArray[np.float64] | None":
        """A fact that nodes may lack, as doubles, `otherwise` on those that do; None when all lack it."""
        column = self._table.column(path)
        if column.absent is None:
            return self.some(column.doubles)
        if column.once(_nowhere):
            return None
        return self.some(np.where(column.absent, otherwise, column.doubles))

    def code(self, text: str) -> int:
        """The number of a text; -1 when no node has it."""
        return self._table.strings.find(text)

    def text(self, code: int) -> str:
        """The text of a number."""
        return self._table.strings.texts[code]


class _AmountColumns(dict[str, Amount]):
    """A map of amounts, made resource by resource when they are asked for. Every resource has one."""

    __slots__ = ("_path", "_rows", "_table")

    def __init__(self, table: NodeTable, path: str, rows: Rows | None) -> None:
        super().__init__()
        self._table = table
        self._path = path
        self._rows = rows

    def __missing__(self, resource: str) -> Amount:
        found = self[resource] = _amount_of(self._table.entry(self._path, resource), self._rows)
        return found


def _amount_of(column: TableColumn, rows: Rows | None) -> Amount:
    """A column of amounts of which nodes have 0 where it is absent."""
    if column.low > -EXACT and column.high < EXACT:
        found = column.once(_in_doubles)
    else:
        absent = column.absent
        numbers = column.values if absent is None else np.where(absent, 0, column.values)
        found = Amount(numbers, *_bounds(column))
    return found if rows is None else found._replace(numbers=found.numbers[rows])


def _in_doubles(column: TableColumn) -> Amount:
    return Amount(column.doubles, *_bounds(column))


def _bounds(column: TableColumn) -> tuple[float, float]:
    if column.absent is None:
        return column.low, column.high
    return min(column.low, 0), max(column.high, 0)


def _any(column: TableColumn) -> bool:
    return bool(column.values.any())


def _nowhere(column: TableColumn) -> bool:
    return column.absent is not None and bool(column.absent.all())


def _codes(column: TableColumn) -> Sequence[int]:
    """The different texts of a column as their numbers; empty where all are 0, the empty one."""
    codes = column.values
    return distinct(codes).tolist() if codes.any() else ()
