"""The implementations that are compared, and what is known of where they leave the language."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from koordpolicy.graph.testing.celpython import FAILED, CelPython, CelPythonRefuses, outside
from koordpolicy.graph.testing.nested import nested
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.errors import CelError, LimitExceeded
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import rewrite
from koordpolicy.language.cel.lower.columns import compile_columns, table_schema
from koordpolicy.language.cel.lower.columns.results import ColumnResult
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import record
from koordpolicy.language.cel.values import Duration, Timestamp, UInt
from koordpolicy.language.facts import FACTS, Fact, FactTable
from koordpolicy.language.facts.table import EVERYWHERE, Record
from koordpolicy.model.table import NodeTable
from tests.differential.cases import Case, Values
from tests.differential.deviations import google_outside
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


@dataclass(frozen=True, slots=True)
class Checked:
    """A case with its typed form, before folding, and the roots that it may read."""

    case: Case
    node: ir.Node
    roots: tuple[str, ...]

    def values(self, row: Values) -> dict[str, Any]:
        return {"now": NOW, **row} if "now" in self.roots else dict(row)


def checked(case: Case) -> Checked:
    """The case, checked in its family's environment."""
    environment: Environment = FACTS_ENVIRONMENT if case.family == "facts" else VALUES_ENVIRONMENT
    roots = ("node", "pod", "now") if case.family == "facts" else (*VARIABLES, "node", "pod", "x")
    return Checked(case, typed(case.text, environment), roots)


@dataclass(frozen=True, slots=True)
class Failed:
    """An error of ours: its kind is part of what row and column programs agree on."""

    kind: str


def rows(one: Checked) -> list[Any]:
    """The row program's value of each row, or `Failed`."""
    program = compile_row(one.roots, fold(one.node))
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


_ROW = FactTable(
    [Record("row", "all", tuple(Fact(name, type, name, EVERYWHERE) for name, (_, type) in VARIABLES.items()))]
)


def columns(one: Checked) -> list[Any]:
    """The column program's value of each row, or `Failed`.

    Plain variables become facts of one record, so that they have columns; records keep theirs.
    """
    facts, node, row_of = FACTS, fold(one.node), "node"
    if one.case.family == "standard":
        facts, row_of = _ROW, "row"
        node = rewrite(node, _as_fact)
    roots = (row_of,) if row_of == "row" else one.roots
    program = compile_columns(node, row_of, roots)
    table = NodeTable(table_schema(facts, row_of))
    for at, row in enumerate(one.case.rows):
        table.put(f"n{at}", row if row_of == "row" else row["node"])
    found: list[Any] = []
    shared = one.case.family != "extended"  # there each row has values of its own for the other roots
    results: list[ColumnResult] = []
    for at, row in enumerate(one.case.rows):
        if at == 0 or not shared:
            values = {} if row_of == "row" else one.values(row)
            results.append(program.call(table, {name: values[name] for name in program.roots}))
        result = results[-1]
        if result.errors is None or not result.errors[at]:
            found.append(result.value(at))
        else:
            error = result.error(at)
            found.append(Failed("nowhere else" if error is None else error.kind))
    return found


def _as_fact(node: ir.Node) -> ir.Node:
    if isinstance(node, ir.Var) and not node.local and node.name in VARIABLES:
        return ir.Field(node.type, ir.Var(record("row"), "row"), node.name)
    return node


def cel_python(one: Checked) -> list[Any]:
    """cel-python's value of each row, or `FAILED`."""
    reason = outside(one.node)
    if reason:
        raise Skipped(reason)
    try:
        program = CelPython(one.case.text)
    except CelPythonRefuses:
        raise Skipped("not parsed") from None
    return [program.value(_trees(one, row)) for row in one.case.rows]


def google(one: Checked) -> list[Any]:
    """The value of Google's C++ runtime for each row, or `FAILED`."""
    if google_cel is None:
        raise Skipped("cel-expr-python is not installed")
    reason = google_outside(one.node)
    if reason:
        raise Skipped(reason)
    try:
        program = _GOOGLE.compile(one.case.text)
    except Exception:  # noqa: BLE001  # its bindings raise several classes for what its checker refuses
        raise Skipped("refused by its checker") from None
    found = []
    for row in one.case.rows:
        values = {name: _to_google(value) for name, value in _trees(one, row).items()}
        result = program.eval(data=values)
        found.append(FAILED if result.type() == google_cel.Type.ERROR else result.plain_value())
    return found


def _trees(one: Checked, row: Values) -> dict[str, Any]:
    """The values of a row, records as maps in maps."""
    return {
        name: nested(name, value) if name in ("node", "pod") else value
        for name, value in one.values(row).items()
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


ENGINES: Mapping[str, Callable[[Checked], list[Any]]] = {
    "columns": columns,
    "cel-python": cel_python,
    "Google's C++": google,
}
"""What is compared with the row program."""
