"""All outputs of a program by row programs: for few rows, for values beyond columns, for error details."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns.bound import Binder, BoundRows
from koordpolicy.language.cel.lower.columns.held import checked, held
from koordpolicy.language.cel.lower.columns.row_cells import within
from koordpolicy.language.cel.lower.columns.strings import CallStrings
from koordpolicy.language.cel.lower.columns.symbols import DTYPES, TIMESTAMP
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.meter import Meter, Metered
from koordpolicy.language.cel.values import Value
from koordpolicy.model.table import NodeTable

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Output:
    """An expression of a program. `kind` is None for results that no array of numbers holds: then
    arrays hold Python values. `simple` is the expression with less left to do.
    """

    name: str
    kind: str | None
    node: ir.Node
    simple: ir.Node


class RowOutputs:
    """The outputs as row programs, each made when first asked for. `roots` begins with the row's."""

    __slots__ = ("_all", "_binder", "_budget", "_single", "outputs", "roots")

    def __init__(self, outputs: tuple[Output, ...], roots: tuple[str, ...], budget: int) -> None:
        self.outputs = outputs
        self.roots = roots
        self._budget = budget
        self._all: Metered | None = None
        self._binder: Binder | None = None
        self._single: dict[str, Callable[..., Any]] = {}

    def evaluate(
        self, table: NodeTable, texts: CallStrings, rows: Sequence[int], own: Sequence[Value], meter: Meter
    ) -> list[Array | None]:
        """Values and errors of each output in turn, for the rows with these numbers."""
        program = self._program()
        answers = [program(meter, table.row(row), *own) for row in rows]
        found: list[Array | None] = []
        for output in self.outputs:
            wide = output.kind in (None, TIMESTAMP)
            values = np.zeros(len(rows), object if wide else DTYPES[str(output.kind)])
            errors = np.zeros(len(rows), np.bool_)
            for at, answer in enumerate(answers):
                try:
                    values[at] = _held(answer[output.name], output.kind, texts)
                except CelError:
                    errors[at] = True
            found += [values, errors if errors.any() else None]
        return found

    def bound(self, own: Sequence[Value]) -> BoundRows:
        """The outputs with the values of all roots but the row's given."""
        if self._binder is None:
            self._binder = Binder(self.roots, [output.simple for output in self.outputs], self._budget)
        return self._binder.bind(own)

    def _program(self) -> Metered:
        if self._all is None:
            outputs = {output.name: output.node for output in self.outputs}
            self._all = within(compile_row(self.roots, outputs, budget=self._budget), self._budget)
        return self._all

    def error(self, output: Output, facts: object, own: Sequence[Value]) -> CelError | None:
        """What goes wrong with an output of these facts; None when nothing does."""
        program = self._single.get(output.name)
        if program is None:
            program = self._single[output.name] = compile_row(
                self.roots, output.node, budget=self._budget
            ).call
        try:
            value = program(facts, *own)
            if output.kind is not None:
                checked(value, output.kind)
        except CelError as error:
            return error
        return None


def _held(value: Any, kind: str | None, texts: CallStrings) -> object:
    """What stands for a value; a point in time as whatever number it is. Raises the CelError that it is."""
    if isinstance(value, CelError):
        raise value
    if kind is None:
        return value
    if kind == TIMESTAMP:
        checked(value, kind)
        return value.ns
    return held(value, kind, texts)
