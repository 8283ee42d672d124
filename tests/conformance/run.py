"""One conformance case: parse, check, compile, run, compare."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import Problem, check
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.cel.types import DYN, Type
from koordpolicy.language.cel.values import Value
from tests.conformance.values import Json, read_type, read_value, same, show


@dataclass(frozen=True, slots=True)
class Case:
    """A case as it stands in a file of vectors."""

    data: Mapping[str, object]

    @property
    def name(self) -> str:
        return "/".join(str(self.data[key]) for key in ("file", "section", "name"))

    @property
    def file(self) -> str:
        return str(self.data["file"])


class Refused(Exception):
    """The expression did not get as far as running."""


def failure(case: Case) -> str | None:
    """Why the case fails, in one phrase; None when it passes."""
    data = case.data
    try:
        if data.get("checkOnly"):
            return _compare_type(data, _checked(data).type)
        value = evaluate(data)
    except (Refused, CelError) as error:
        return None if "error" in data else f"{type(error).__name__}: {error}"
    if "error" in data:
        return f"gives {show(value)}, where an error is expected"
    expected = read_value(data["value"]) if "value" in data else True  # type: ignore[arg-type]
    if not same(value, expected):
        return f"gives {show(value)} instead of {show(expected)}"
    return _compare_type(data, _checked(data).type) if "type" in data else None


def _compare_type(data: Mapping[str, object], found: Type) -> str | None:
    expected = read_type(data["type"])  # type: ignore[arg-type]
    return None if found == expected else f"is of type {found} instead of {expected}"


def evaluate(data: Mapping[str, object]) -> Value:
    """The value of a case's expression. Raises Refused or CelError."""
    typed = _checked(data)
    bindings: Mapping[str, Json] = data.get("bindings", {})  # type: ignore[assignment]
    names = sorted({*bindings, *_declared_variables(data)})
    roots = [name for name in names if name in bindings]
    values = [read_value(bindings[name]) for name in roots]
    outcomes = [_outcome(roots, tree, values) for tree in (typed, fold(typed))]
    if not _agree(*outcomes):
        raise AssertionError(f"folding changes the result: {outcomes[0]!r}, folded {outcomes[1]!r}")
    if isinstance(outcomes[0], CelError):
        raise outcomes[0]
    return outcomes[0]


def _outcome(roots: list[str], tree: ir.Node, values: list[Value]) -> Value:
    """The value, or the error as a value."""
    try:
        return compile_row(roots, tree).call(*values)
    except CelError as error:
        return error


def _agree(one: Value, other: Value) -> bool:
    if isinstance(one, CelError) or isinstance(other, CelError):
        return isinstance(one, CelError) and isinstance(other, CelError)
    return same(one, other)


def _declared_variables(data: Mapping[str, object]) -> dict[str, Type]:
    declared: list[Json] = data.get("typeEnv", [])  # type: ignore[assignment]
    return {str(row["name"]): read_type(row["ident"]["type"]) for row in declared if "ident" in row}  # type: ignore[index]


def _declared_functions(data: Mapping[str, object]) -> dict[str, Function]:
    declared: list[Json] = data.get("typeEnv", [])  # type: ignore[assignment]
    functions: dict[str, Function] = {}
    for row in declared:
        if "function" in row:
            rows: list[Json] = row["function"]["overloads"]  # type: ignore[index]
            overloads = tuple(
                Overload(
                    str(o["overloadId"]),
                    tuple(map(read_type, o.get("params", []))),  # type: ignore[call-overload]
                    read_type(o["resultType"]),  # type: ignore[arg-type]
                    _not_run,
                    receiver=bool(o.get("isInstanceFunction")),
                )
                for o in rows
            )
            functions[str(row["name"])] = Function(str(row["name"]), "conformance", "declared", overloads)
    return functions


def _not_run(*_: Value) -> Value:
    raise AssertionError("declared functions are only checked")


def _checked(data: Mapping[str, object]) -> ir.Node:
    bindings: Mapping[str, Json] = data.get("bindings", {})  # type: ignore[assignment]
    variables = dict.fromkeys(bindings, DYN) | _declared_variables(data)
    macros = not data.get("disableMacros")
    environment = Environment(
        variables=variables,
        functions={**FUNCTIONS, **_declared_functions(data)},
        container=str(data.get("container", "")),
        macros=macros,
        unchecked=bool(data.get("disableCheck")),
    )
    source = str(data["expr"])
    problems: list[Problem] = []
    try:
        typed = check(parse(source, macros), environment, problems, source)
    except SyntaxProblem as problem:
        raise Refused(str(problem)) from problem
    if problems:
        raise Refused("; ".join(map(str, problems)))
    return typed
