"""Column programs: one or several expressions as one generated function over a table of nodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.defects import error_of
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns.bound import BoundRows
from koordpolicy.language.cel.lower.columns.kernels import Beyond
from koordpolicy.language.cel.lower.columns.memory import Memory, Slots
from koordpolicy.language.cel.lower.columns.parts import ENTRIES, OPERATION, Fallback
from koordpolicy.language.cel.lower.columns.results import ColumnResult
from koordpolicy.language.cel.lower.columns.row_outputs import Output, RowOutputs
from koordpolicy.language.cel.lower.columns.strings import CallStrings
from koordpolicy.language.cel.lower.row import RowProgram
from koordpolicy.language.cel.meter import COLUMN_SHARE, Meter, stop
from koordpolicy.language.cel.values import Value
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.access_path import AccessPath, access_path
from koordpolicy.model.table.columns import BeyondColumnsError

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Code:
    """The generated functions. Those of a `whole` program read lists, and always of all rows. They may give up with
    `Beyond`. `operations` are as many as nodes.
    """

    prepare: Callable[..., Any]
    run: Callable[..., Any]
    shared: RowProgram | None
    slots: Slots
    whole: bool
    fallback: tuple[Fallback, ...]
    source: str
    operations: int


class ColumnProgram:
    """A compiled set of expressions.

    `roots` are the names that `call` needs values for, the table's own excluded. `fallback` lists what
    row programs evaluate, `source` is the generated text, `facts` the (record, path) pairs read, `outputs` has the
    names of the outputs in order.
    """

    __slots__ = (
        "_budget",
        "_code",
        "_general",
        "_memory",
        "_rows",
        "facts",
        "fallback",
        "outputs",
        "roots",
        "source",
        "table_root",
    )

    def __init__(
        self, table_root: str, roots: tuple[str, ...], code: Code, general: Callable[[], Code], rows: RowOutputs,
        facts: frozenset[tuple[str, str]], budget: int,
    ) -> None:  # fmt: skip
        self.table_root = table_root
        self.roots = roots
        self.fallback = code.fallback
        self.source = code.source
        self.facts = facts
        self.outputs = tuple(output.name for output in rows.outputs)
        self._budget = budget * COLUMN_SHARE
        self._code = code
        self._general = general
        self._rows = rows
        self._memory: list[Memory] = []

    def call(self, table: NodeTable, values: Mapping[str, Value], rows: Array | None = None) -> ColumnResult:
        """The only output, for all rows or for those with the numbers `rows`.

        `values` has the other roots: flat records, or values such as `now`.
        """
        return self.call_all(table, values, rows)[self._rows.outputs[0].name]

    def call_all(
        self, table: NodeTable, values: Mapping[str, Value], rows: Array | None = None
    ) -> dict[str, ColumnResult]:
        """All outputs by name. Raises CostExceeded where all rows together cost more than they may."""
        own = [values[name] for name in self.roots]
        meter: Meter = [self._budget, self._budget]
        while True:
            texts = CallStrings(table.strings)
            found = self._evaluate(table, texts, rows, own, meter)
            if not texts.outdated:  # only the first call makes columns
                break
        results = {}
        for at, output in enumerate(self._rows.outputs):
            held, errors = found[2 * at], found[2 * at + 1]
            assert held is not None
            results[output.name] = ColumnResult(
                output.kind, held, errors, texts, self._detail(output, table, rows, own)
            )
        return results

    def bound(self, values: Mapping[str, Value]) -> BoundRows:
        """The outputs for rows asked one by one, with the values of the other roots given once."""
        return self._rows.bound([values[name] for name in self.roots])

    def _evaluate(
        self, table: NodeTable, texts: CallStrings, rows: Array | None, own: list[Value], meter: Meter
    ) -> Sequence[Array | None]:
        """Values and errors of each output in turn."""
        code = self._code
        if rows is not None and (code.whole or access_path(len(rows)) is AccessPath.ONE_BY_ONE):
            return self._rows.evaluate(table, texts, rows.tolist(), own, meter)
        count = len(table) if rows is None else len(rows)
        meter[0] -= code.operations * (OPERATION + count // ENTRIES)
        if meter[0] < 0:
            stop(meter)
        try:
            with np.errstate(all="ignore"):
                prepared = code.prepare(own, {} if code.shared is None else code.shared.call(*own))
                # Taking the memory out of its place keeps a second thread from using it meanwhile.
                memory = self._memory.pop() if self._memory else Memory(code.slots)
                if memory.slots is not code.slots:  # that of the code before
                    memory = Memory(code.slots)
                found: Sequence[Array | None] = code.run(
                    table, texts, rows, count, own, prepared, memory, meter
                )
                self._memory = [memory]
                return found
        except Beyond:
            # Numbers as large as that seldom come alone: from now on all are held as int64.
            self._code, self._memory = self._general(), []
            return self._evaluate(table, texts, rows, own, meter)
        except BeyondColumnsError:
            numbers = range(count) if rows is None else rows.tolist()
            return self._rows.evaluate(table, texts, numbers, own, meter)
        except CelError:
            raise
        except Exception as defect:  # noqa: BLE001  # row by row, it costs the rows that it concerns
            error_of(defect)
            numbers = range(count) if rows is None else rows.tolist()
            return self._rows.evaluate(table, texts, numbers, own, meter)

    def _detail(
        self, output: Output, table: NodeTable, rows: Array | None, own: list[Value]
    ) -> Callable[[int], CelError | None]:
        def detail(at: int) -> CelError | None:
            return self._rows.error(output, table.row(at if rows is None else int(rows[at])), own)

        return detail
