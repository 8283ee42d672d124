"""Changes of policies: of an operator, a constant, a comparison, a guard, an arm, a unit, an entry of a list, a threshold.

Each is of one place of one document; whether the result still compiles is for the compiler to say.
"""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from koordpolicy.graph import Compilation
from koordpolicy.graph.state import Unit, texts_of
from koordpolicy.language.cel import ast
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem

SWAPPED = {
    "_<_": ("<=", ">"), "_<=_": ("<", ">="), "_>_": (">=", "<"), "_>=_": (">", "<="), "_==_": ("!=",), "_!=_": ("==",),
    "_+_": ("-",), "_-_": ("+",), "_*_": ("/",), "_/_": ("*",), "_%_": ("/",), "_&&_": ("||",), "_||_": ("&&",),
}  # fmt: skip
CALLED = {
    "startsWith": "endsWith", "endsWith": "startsWith", "contains": "startsWith", "min": "max", "max": "min",
    "all": "exists", "exists": "all", "exists_one": "exists", "getHours": "getMinutes", "getDayOfWeek": "getDate",
    "or": "orValue",
}  # fmt: skip
FACTS = {
    "total": "system", "system": "total", "prod": "total", "request": "limit", "limit": "request", "capacity": "allocatable",
    "allocatable": "capacity", "free": "requested", "requested": "free", "active": "known", "known": "active", "band": "rawBand",
    "rawBand": "band", "qos": "qosLabel", "qosLabel": "qos", "reserved": "capacity", "usage": "request", "physical": "allocatable",
    "filterLoad": "scoreLoad", "prodLoad": "filterLoad", "labels": "annotations", "name": "namespace", "namespace": "name",
}  # fmt: skip
_QUANTITY = re.compile(r"^([0-9]+(?:\.[0-9]+)?)(%|m|Ki|Mi|Gi|s|ms|h|d)?$")
_UNITS = {"m": "", "": "m", "Gi": "Mi", "Mi": "Gi", "s": "m", "h": "m", "ms": "s"}
_TESTS = ("PolicyTest", "PolicyBundle")


@dataclass(frozen=True)
class Mutation:
    """A file's new text, and what was changed in it: `kind` is a word for the sort of change."""

    file: str
    text: str
    kind: str
    what: str


def mutations(compilation: Compilation, layer: str) -> Iterator[Mutation]:
    """Every change of every document of a layer."""
    by_file: dict[str, list[Unit]] = {}
    for unit in compilation.units:
        if unit.layer_name == layer:
            by_file.setdefault(unit.document.span.file, []).append(unit)
    for file, units in sorted(by_file.items()):
        for at, unit in enumerate(units):
            if unit.kind.name in _TESTS:
                continue
            for data, kind, what in _of_document(unit):
                documents = [data if n == at else other.document.data for n, other in enumerate(units)]
                yield Mutation(file, "\n---\n".join(map(json.dumps, documents)), kind, f"{unit.id}: {what}")


def _of_document(unit: Unit) -> Iterator[tuple[Any, str, str]]:
    texts = dict(texts_of(unit))
    for path, text in texts.items():
        try:
            tree = parse(text)
        except SyntaxProblem:
            continue
        for new, kind, what in _of_expression(text, tree):
            yield _with(unit.document.data, path, new), kind, what
    for path, value in _leaves(unit.document.data.get("spec"), ("spec",)):
        if (
            path in texts
            or "description" in path
            or path[-1] in ("schedulerName", "name", "plugin", "resource")
        ):
            continue
        for new, kind in _of_literal(value):
            yield _with(unit.document.data, path, new), kind, f"{'.'.join(map(str, path))}: {value} -> {new}"


def _with(data: Any, path: tuple[str | int, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        yield path, value
        for at, inner in enumerate(value):
            yield from _leaves(inner, (*path, at))
    else:
        yield path, value


def _of_literal(value: Any) -> Iterator[tuple[Any, str]]:
    """A literal of a slot, a parameter or a selector."""
    match value:
        case bool():
            yield not value, "yaml flag"
        case int():
            yield value + 1, "yaml number"
            yield value * 2 if value else 10, "yaml number"
        case list():
            for at in range(len(value)):
                yield value[:at] + value[at + 1 :], "yaml entry"
        case str():
            found = _QUANTITY.match(value)
            if found:
                number = float(found[1])
                changed = f"{int(number) + 1 if number.is_integer() else number + 1:g}{found[2] or ''}"
                yield changed, "yaml threshold"
                yield f"{number * 2:g}{found[2] or ''}", "yaml threshold"
                yield f"{number / 2:g}{found[2] or ''}", "yaml threshold"
                if (found[2] or "") in _UNITS:
                    yield f"{found[1]}{_UNITS[found[2] or '']}", "yaml unit"
            elif value and len(value) < 60:
                yield value + "x", "yaml text"


def _of_expression(text: str, tree: ast.Expr) -> Iterator[tuple[str, str, str]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        waiting += ast.children(node)
        for new, kind in _of_node(text, node):
            old = text[node.start : node.end]
            yield text[: node.start] + new + text[node.end :], kind, f"`{_short(old)}` -> `{_short(new)}`"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 70 else text[:67] + "..."


def _of_node(text: str, node: ast.Expr) -> Iterator[tuple[str, str]]:
    def of(part: ast.Expr) -> str:
        return f"({text[part.start : part.end]})"

    match node:
        case ast.Literal(value=value):
            yield from _of_constant(value, text[node.start : node.end])
        case ast.ListLiteral(elements=elements):
            for at in range(len(elements)):
                kept = [text[one.start : one.end] for n, one in enumerate(elements) if n != at]
                yield f"[{', '.join(kept)}]", "list entry"
        case ast.SelectExpr(test=True):
            yield "true", "guard"
        case ast.SelectExpr(field=name, field_start=start) if name in FACTS:
            yield text[node.start : start] + FACTS[name] + text[start + len(name) : node.end], "fact"
        case ast.CallExpr(function="_?_:_", args=(condition, then, otherwise)):
            yield f"({of(condition)} ? {of(otherwise)} : {of(then)})", "arms"
            yield of(then), "arms"
            yield of(otherwise), "arms"
        case ast.CallExpr(function="!_", args=(operand,)):
            yield of(operand), "negation"
        case ast.CallExpr(function=function, args=(left, right)) if function in SWAPPED:
            yield from _of_operator(function, of(left), of(right))
        case ast.CallExpr(function=function, name_start=start) if function in CALLED:
            yield (
                text[node.start : start] + CALLED[function] + text[start + len(function) : node.end],
                "function",
            )
        case ast.CallExpr(function="filter", target=ast.Expr() as target):
            yield of(target), "filter"
    if node.start == 0 and node.end == len(text):
        yield f"({text}) == ({text})", "whole"


def _of_operator(function: str, left: str, right: str) -> Iterator[tuple[str, str]]:
    """Another operator between two operands, one of them alone, or both the other way round."""
    kind = "comparison" if function[1] in "<>=!" else "logic" if function[1] in "&|" else "operator"
    for operator in SWAPPED[function]:
        yield f"({left} {operator} {right})", kind
    if kind != "operator":
        yield f"(!({left} {function.strip('_')} {right}))", "negation"
    if kind == "logic":
        yield left, "guard"
        yield right, "guard"
    if function in ("_-_", "_/_"):
        yield f"({right} {function[1]} {left})", "operands"


def _of_constant(value: object, text: str) -> Iterator[tuple[str, str]]:
    match value:
        case bool():
            yield str(not value).lower(), "constant"
        case int():
            yield str(value + 1), "constant"
            yield (str(value - 1) if value > 0 else "7"), "constant"
            yield str(value * 10 or 100), "constant"
            yield str(value * 2 + 3), "constant"
            if value > 1:
                yield "0", "constant"
        case float():
            yield repr(value + 1.0), "constant"
            yield repr(value / 2), "constant"
            yield repr(value * 1.001), "constant"
        case str():
            found = _QUANTITY.match(value)
            quote = text[0] if text[:1] in "'\"" else "'"
            if found and found[2] != "%":
                unit = found[2] or ""
                yield f"{quote}{int(float(found[1])) + 1}{unit}{quote}", "constant"
                if unit in _UNITS:
                    yield f"{quote}{found[1]}{_UNITS[unit]}{quote}", "unit"
            else:
                yield f"{quote}{value}x{quote}", "constant"
                if value:
                    yield f"{quote}{quote}", "constant"
