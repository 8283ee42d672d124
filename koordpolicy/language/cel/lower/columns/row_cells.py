"""Row programs inside a column program: what has no column form, for the rows that need it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns.held import held
from koordpolicy.language.cel.lower.columns.strings import CallStrings
from koordpolicy.language.cel.lower.columns.symbols import DTYPES
from koordpolicy.language.cel.lower.row import RowProgram
from koordpolicy.language.cel.meter import Meter, Metered, charge, meter_of, stop
from koordpolicy.model.table import NodeTable

Array = NDArray[Any]


_ROW = 100
"""Units of asking about one row: taking its facts together, keeping the answer."""


def within(program: RowProgram, budget: int) -> Metered:
    """A row program that spends of a meter that many rows share, and of its own `budget` besides.

    Raises CostExceeded for either, and leaves the shared meter below zero where it is that one.
    """
    call, price = program.call, program.price + _ROW
    if not program.metered:

        def unmetered(meter: Meter, *arguments: object) -> object:
            charge(meter, price)
            return call(*arguments)

        return unmetered

    def metered(meter: Meter, *arguments: object) -> object:
        own = meter_of(budget)
        try:
            return call(*arguments, own)
        finally:
            meter[0] -= price + budget - max(0, own[0])
            if meter[0] < 0:
                stop(meter)

    return metered


def attempt(function: Metered, meter: Meter, *arguments: object) -> tuple[object, bool]:
    """A row program's value, and whether it failed. Raises CostExceeded where all rows together cost too much."""
    try:
        return function(meter, *arguments), False
    except CelError:
        if meter[0] < 0:
            raise
        return None, True


class Cell:
    """A subexpression evaluated row by row during one call, each row at most once.

    The function takes the row's facts and then `arguments`. Without a kind, values are any object.
    """

    __slots__ = (
        "_arguments",
        "_done",
        "_errors",
        "_failed",
        "_function",
        "_kind",
        "_meter",
        "_rows",
        "_strings",
        "_table",
        "_values",
    )

    def __init__(
        self, function: Metered, kind: str | None, table: NodeTable, rows: Array | None, count: int,
        arguments: tuple[object, ...], strings: CallStrings, meter: Meter,
    ) -> None:  # fmt: skip
        self._function = function
        self._kind = kind
        self._table = table
        self._rows = rows
        self._arguments = arguments
        self._strings = strings
        self._meter = meter
        self._values = np.zeros(count, object if kind is None else DTYPES[kind])
        self._failed = np.zeros(count, np.bool_)
        self._done = np.zeros(count, np.bool_)
        self._errors = 0

    def fill(self, need: Array | None) -> tuple[Array, Array | None]:
        """Values and errors, right where `need` (None: everywhere) says so."""
        todo = ~self._done if need is None else need & ~self._done
        for at in np.flatnonzero(todo):
            self._evaluate(int(at))
        self._done |= todo
        return self._values, self._failed if self._errors else None

    def _evaluate(self, at: int) -> None:
        row = at if self._rows is None else int(self._rows[at])
        try:
            value: Any = self._function(self._meter, self._table.row(row), *self._arguments)
            self._values[at] = value if self._kind is None else held(value, self._kind, self._strings)
        except CelError:
            if self._meter[0] < 0:
                raise
            self._failed[at] = True
            self._errors += 1
