"""Parts of a program that only the table decides, or the table and the time of day: computed when these have
changed, else kept.

Most of what a scheduler asks about a node does not depend on the pod, and most nodes are as they were
when the last pod asked.
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.lower.columns.held import instant
from koordpolicy.language.cel.lower.columns.memory import Memory, Slots
from koordpolicy.language.cel.lower.columns.row_cells import attempt
from koordpolicy.language.cel.lower.columns.strings import CallStrings
from koordpolicy.language.cel.meter import Meter, Metered
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, Duration, Timestamp
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.access_path import AccessPath, access_path

Array: TypeAlias = NDArray[Any]
Result: TypeAlias = tuple[Array, Array | None, float, float]
"""Values, errors, and bounds of the values."""


@dataclass(slots=True)
class _State:
    """The last result, for which table and other values, and in which version of the table."""

    table: "weakref.ref[NodeTable]"
    given: tuple[object, ...]
    stamp: int
    version: int
    result: Result


class Kept:
    """One part. `function` computes it, over all rows or some; `by_row` makes a row program for it, which a
    part that reads lists (`whole`) needs for some rows. `paths` are the facts that it reads; what it reads beside the
    table is `given` with each call.
    """

    __slots__ = ("_by_row", "_function", "_make_row", "_memory", "_paths", "_slots", "_state", "_whole")

    def __init__(
        self, function: Callable[..., Result], slots: Slots, paths: Sequence[str], whole: bool,
        make_row: Callable[[], Metered],
    ) -> None:  # fmt: skip
        self._function = function
        self._slots = slots
        self._paths = tuple(paths)
        self._whole = whole
        self._make_row = make_row
        self._by_row: Metered | None = None
        self._memory: list[Memory] = []
        self._state: _State | None = None

    def get(self, table: NodeTable, rows: Array | None, count: int, meter: Meter, *given: object) -> Result:
        """The part for all rows, or computed for some. Nobody else may write the arrays."""
        if rows is not None:
            return self._compute(table, rows, count, meter, given)
        state = self._state
        if state is None or state.table() is not table or state.given != given:
            return self._renew(table, count, meter, given)
        version = table.version
        if state.version == version:
            return state.result
        stamp = table.stamp(self._paths)
        if state.stamp == stamp:
            state.version = version
            return state.result
        if len(state.result[0]) != count or (self._whole and given):
            return self._renew(table, count, meter, given)
        touched = table.touched_since(state.version)
        if touched is None or access_path(len(touched), count) is AccessPath.ALL:
            return self._renew(table, count, meter, given)
        part = self._some(table, touched, meter, given)
        state.result = _laid_over(state.result, part, touched)
        state.stamp, state.version = stamp, version
        return state.result

    def _renew(self, table: NodeTable, count: int, meter: Meter, given: tuple[object, ...]) -> Result:
        result = self._compute(table, None, count, meter, given)
        self._state = _State(weakref.ref(table), given, table.stamp(self._paths), table.version, result)
        return result

    def _compute(
        self, table: NodeTable, rows: Array | None, count: int, meter: Meter, given: tuple[object, ...]
    ) -> Result:
        memory = self._memory.pop() if self._memory else Memory(self._slots)
        while True:
            texts = CallStrings(table.strings)
            result = self._function(table, texts, rows, count, memory, meter, *given)
            if not texts.outdated:  # only the first call makes columns
                break
        self._memory = [memory]
        return result

    def _some(self, table: NodeTable, rows: Array, meter: Meter, given: tuple[object, ...]) -> Result:
        if not self._whole:
            return self._compute(table, rows, len(rows), meter, given)
        if self._by_row is None:
            self._by_row = self._make_row()
        found = [attempt(self._by_row, meter, table.row(int(row))) for row in rows]
        values: list[Any] = [0 if failed else _plain(value) for value, failed in found]
        errors = np.array([failed for _, failed in found], np.bool_)
        unknown = not values or isinstance(values[0], float)
        low = -np.inf if unknown else max(min(values), INT_MIN)
        high = np.inf if unknown else min(max(values), INT_MAX)
        return np.array(values), errors if errors.any() else None, low, high


def _plain(value: Any) -> Any:
    return instant(value) if isinstance(value, (Duration, Timestamp)) else value


def _laid_over(whole: Result, part: Result, rows: Array) -> Result:
    """The result with some rows computed again, in the same arrays."""
    values, errors, low, high = whole
    if not values.flags.writeable:
        values = values.copy()  # one value stood for all rows
    values[rows] = part[0]
    if errors is None and part[1] is not None:
        errors = np.zeros(len(values), np.bool_)
    if errors is not None:
        errors[rows] = False if part[1] is None else part[1]
    return values, errors, min(low, part[2]), max(high, part[3])
