"""Row programs inside a column program: what has no column form, for the rows that need it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns.held import held
from koordpolicy.language.cel.lower.columns.strings import CallStrings
from koordpolicy.language.cel.lower.columns.symbols import DTYPES
from koordpolicy.model.table import NodeTable

Array = NDArray[Any]


def attempt(function: Callable[..., object], *arguments: object) -> tuple[object, bool]:
    """A row program's value, and whether it failed."""
    try:
        return function(*arguments), False
    except CelError:
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
        "_rows",
        "_strings",
        "_table",
        "_values",
    )

    def __init__(
        self, function: Callable[..., object], kind: str | None, table: NodeTable, rows: Array | None, count: int,
        arguments: tuple[object, ...], strings: CallStrings,
    ) -> None:  # fmt: skip
        self._function = function
        self._kind = kind
        self._table = table
        self._rows = rows
        self._arguments = arguments
        self._strings = strings
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
            value: Any = self._function(self._table.row(row), *self._arguments)
            self._values[at] = value if self._kind is None else held(value, self._kind, self._strings)
        except CelError:
            self._failed[at] = True
            self._errors += 1
