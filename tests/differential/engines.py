"""The implementations that are compared, and what is known of where they leave the language."""

import datetime as dt
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from koordpolicy.graph.testing.celpython import FAILED, CelPython, CelPythonRefuses, outside
from koordpolicy.graph.testing.nested import nested
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.errors import CelError, LimitExceeded
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import rewrite
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.columns import ColumnProgram, compile_columns, table_schema
from koordpolicy.language.cel.lower.columns.results import ColumnResult
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import DURATION, TIMESTAMP, Type, record
from koordpolicy.language.cel.values import Duration, Timestamp, UInt
from koordpolicy.language.facts import FACTS, Fact, FactTable
from koordpolicy.language.facts.table import EVERYWHERE, Record
from koordpolicy.model.table import NodeTable
from tests.differential.cases import Case, Values
from tests.differential.deviations import google_outside
from tests.differential.grammar import KINDS
from tests.differential.grammar import VARIABLES as LANGUAGE_VARIABLES
from tests.differential.outcomes import Failed
from tests.unit.language.cel.back.expressions import ENVIRONMENT as VALUES_ENVIRONMENT
from tests.unit.language.cel.back.expressions import VARIABLES, typed
from tests.unit.language.cel.columns.support import ENVIRONMENT as FACTS_ENVIRONMENT
from tests.unit.language.cel.columns.support import NOW

try:
    from cel_expr_python import cel as google_cel
    from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings
except ImportError:
    google_cel = None


class Skipped(Exception):
    """The engine is not asked; the message says why."""


ROW_VARIABLES: Mapping[str, Mapping[str, Type]] = {
    "standard": {name: type for name, (_, type) in VARIABLES.items()},
    "library": {name: KINDS[kind] for name, kind in LANGUAGE_VARIABLES.items()},
    "kubernetes": {name: KINDS[kind] for name, kind in LANGUAGE_VARIABLES.items()},
}
"""The families whose variables become facts of one record, so that they have columns and may be missing."""


def _environment(family: str) -> Environment:
    match family:
        case "facts":
            return FACTS_ENVIRONMENT
        case "library" | "kubernetes":
            return Environment(variables=ROW_VARIABLES[family], functions=FUNCTIONS)
    return VALUES_ENVIRONMENT


_ENVIRONMENTS = {
    family: _environment(family) for family in ("standard", "extended", "facts", "library", "kubernetes")
}
_TABLES = {
    family: FactTable(
        [Record("row", "all", tuple(Fact(name, type, name, EVERYWHERE) for name, type in variables.items()))]
    )
    for family, variables in ROW_VARIABLES.items()
}
_ROOTS = {"facts": ("node", "pod", "now"), "extended": (*VARIABLES, "node", "pod", "x")}


class Checked:
    """A case with its typed form: as it was read (`node`), and as our programs are made from it."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.node = typed(case.text, _ENVIRONMENTS[case.family])
        self.row_of = "row" if case.family in ROW_VARIABLES else "node"
        self.roots: tuple[str, ...] = _ROOTS.get(case.family, ("row",))
        self.whole = self.node
        if self.row_of == "row":
            variables = ROW_VARIABLES[case.family]
            self.whole = rewrite(self.node, lambda node: _as_fact(node, variables))

    @cached_property
    def folded(self) -> ir.Node:
        return fold(self.whole)

    @cached_property
    def column_program(self) -> ColumnProgram:
        return compile_columns(self.folded, self.row_of, self.roots)

    @cached_property
    def table(self) -> NodeTable:
        """The rows, as facts of nodes or of rows."""
        table = NodeTable(_SCHEMAS[self.case.family])
        for at, row in enumerate(self.case.rows):
            table.put(f"n{at}", row if self.row_of == "row" else row["node"])
        return table

    def values(self, row: Values) -> dict[str, Any]:
        """The values of the roots in a row."""
        if self.row_of == "row":
            return {"row": row}
        return {"now": NOW, **row} if "now" in self.roots else dict(row)

    def others(self, row: Values) -> dict[str, Any]:
        """The values of the roots beside that which the rows are of."""
        if self.row_of == "row":
            return {}
        values = self.values(row)
        return {name: values[name] for name in self.column_program.roots}


_SCHEMAS = {
    family: table_schema(_TABLES.get(family, FACTS), "row" if family in _TABLES else "node")
    for family in _ENVIRONMENTS
}


def _as_fact(node: ir.Node, variables: Mapping[str, Type]) -> ir.Node:
    if isinstance(node, ir.Var) and not node.local and node.name in variables:
        return ir.Field(node.type, ir.Var(record("row"), "row"), node.name)
    return node


def rows(one: Checked) -> list[Any]:
    """The row program's value of each row, or `Failed`."""
    return _row_by_row(one, one.folded)


def unfolded(one: Checked) -> list[Any]:
    """The same from the form before constants are folded."""
    return _row_by_row(one, one.whole)


def _row_by_row(one: Checked, node: ir.Node) -> list[Any]:
    program = compile_row(one.roots, node)
    found: list[Any] = []
    for row in one.case.rows:
        values = one.values(row)
        try:
            found.append(program.call(*(values.get(name) for name in one.roots)))
        except LimitExceeded:
            raise Skipped("a limit of ours") from None
        except CelError as error:
            found.append(Failed(error.kind))
    return found


def columns(one: Checked) -> list[Any]:
    """The column program's value of each row, or `Failed`."""
    found: list[Any] = []
    shared = one.case.family != "extended"  # there each row has values of its own for the other roots
    results: list[ColumnResult] = []
    for at, row in enumerate(one.case.rows):
        if at == 0 or not shared:
            results.append(one.column_program.call(one.table, one.others(row)))
        result = results[-1]
        if result.errors is None or not result.errors[at]:
            found.append(result.value(at))
        else:
            error = result.error(at)
            found.append(Failed("nowhere else" if error is None else error.kind))
    return found


def bound(one: Checked) -> list[Any]:
    """What the column program answers for one row after another, its other roots bound; times are nanoseconds."""
    found: list[Any] = []
    for at, row in enumerate(one.case.rows):
        (answer,) = one.column_program.bound(one.others(row)).ask(one.table.row(at))
        if isinstance(answer, CelError):
            found.append(Failed(answer.kind))
        elif one.node.type in (DURATION, TIMESTAMP) and isinstance(answer, int):
            found.append((Duration if one.node.type == DURATION else Timestamp)(answer))
        else:
            found.append(answer)
    return found


def cel_python(one: Checked) -> list[Any]:
    """cel-python's value of each row, or `FAILED`."""
    if one.case.family not in ("standard", "extended", "facts"):
        raise Skipped("another family")
    reason = outside(one.node)
    if reason:
        raise Skipped(reason)
    try:
        program = CelPython(one.case.text)
    except CelPythonRefuses:
        raise Skipped("not parsed") from None
    return [program.value(trees(one, row)) for row in one.case.rows]


def google(one: Checked) -> list[Any]:
    """The value of Google's C++ runtime for each row, or `FAILED`."""
    if google_cel is None:
        raise Skipped("cel-expr-python is not installed")
    if one.case.family not in ("standard", "extended", "facts"):
        raise Skipped("another family")
    reason = google_outside(one.node)
    if reason:
        raise Skipped(reason)
    try:
        program = _GOOGLE.compile(one.case.text)
    except Exception:  # noqa: BLE001  # its bindings raise several classes for what its checker refuses
        raise Skipped("refused by its checker") from None
    found = []
    for row in one.case.rows:
        values = {name: _to_google(value) for name, value in trees(one, row).items()}
        result = program.eval(data=values)
        found.append(FAILED if result.type() == google_cel.Type.ERROR else result.plain_value())
    return found


def trees(one: Checked, row: Values, *, times: bool = False) -> dict[str, Any]:
    """The values of a row, records as maps in maps, with the times in them if wanted."""
    values = dict(row) if one.row_of == "row" else one.values(row)
    return {
        name: nested(name, value, times=times) if name in ("node", "pod") else value
        for name, value in values.items()
    }


def _google_environment() -> Any:
    kinds = google_cel.Type
    types = {
        "int": kinds.INT, "uint": kinds.UINT, "double": kinds.DOUBLE, "bool": kinds.BOOL, "string": kinds.STRING,
        "ints": kinds.List(kinds.INT), "strings": kinds.List(kinds.STRING), "map": kinds.Map(kinds.STRING, kinds.INT),
        "timestamp": kinds.TIMESTAMP, "duration": kinds.DURATION,
    }  # fmt: skip
    plain = {name: types[kind] for name, (kind, _) in VARIABLES.items()}
    records = dict.fromkeys(("node", "pod", "x"), kinds.DYN)
    extensions = [
        ext_bindings.ExtBindings(), ext_math.ExtMath(), ext_optional.ExtOptional(), ext_strings.ExtStrings(),
    ]  # fmt: skip
    return google_cel.NewEnv(variables={**plain, **records, "now": kinds.TIMESTAMP}, extensions=extensions)


_GOOGLE: Any = None if google_cel is None else _google_environment()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _to_google(value: Any) -> Any:
    match value:
        case Duration():
            return dt.timedelta(microseconds=value.ns // 1000)
        case Timestamp():
            return _EPOCH + dt.timedelta(microseconds=value.ns // 1000)
        case UInt():
            return int(value)
        case dict():
            return {key: _to_google(item) for key, item in value.items()}
        case list():
            return [_to_google(item) for item in value]
    return value


OURS: Mapping[str, Callable[[Checked], list[Any]]] = {
    "unfolded": unfolded,
    "columns": columns,
    "bound": bound,
}
"""Our own other ways to a value, which are compared with the row program."""

REFEREES: Mapping[str, Callable[[Checked], list[Any]]] = {"cel-python": cel_python, "Google's C++": google}
"""Others' implementations in this process. Those that are programs of their own are in `referees`."""
