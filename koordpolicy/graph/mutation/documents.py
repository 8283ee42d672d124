"""The mutants of documents: of their expressions, their values, and what they apply to."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from koordpolicy.graph.mutation.domains import ValueDomains, domains_of
from koordpolicy.graph.mutation.expressions import changed, changes
from koordpolicy.graph.mutation.literals import others
from koordpolicy.graph.mutation.mutant import Mutant
from koordpolicy.graph.mutation.operators import Operator
from koordpolicy.graph.state import Unit, texts_of
from koordpolicy.language.cel import ast
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.cel.unparse import unparse
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import Expression, slot_values
from koordpolicy.language.kinds.bundle import PolicyBundleSpec, PolicyTestSpec
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec
from koordpolicy.language.kinds.invariants import InvariantSpec
from koordpolicy.language.kinds.walk import cel_values

_SAID_OF_POLICIES = (PolicyBundleSpec, PolicyTestSpec, InvariantSpec)
"""What decides nothing itself."""

_SPOKEN = frozenset(("message", "description"))
"""Fields for people."""

_FIXED = frozenset(("plugin",))
"""Fields whose every other value makes something else of the document."""

_OTHER_OPERATOR = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
_ALWAYS = "true"
_LONGEST = 60


def mutants_of(units: Iterable[Unit], *, thorough: bool = False) -> tuple[Mutant, ...]:
    """All mutants of the documents, by file and place; tests, invariants and the bundle's own document have none.

    With `thorough` there are more of each place, which the same cases notice.
    """
    mutable = [unit for unit in units if not isinstance(unit.spec, _SAID_OF_POLICIES)]
    mutable.sort(key=lambda unit: unit.document.span)
    texts = {unit: tuple(_expressions(unit)) for unit in mutable}
    domains = domains_of((tree for found in texts.values() for _, _, tree, _ in found), thorough=thorough)
    seen: set[tuple[str, str]] = set()
    made: list[Mutant] = []
    for unit in mutable:
        for mutant in _mutants(unit, texts[unit], domains):
            key = json.dumps([mutant.path, mutant.value], default=str)
            if (unit.id + unit.layer_name, key) not in seen:
                seen.add((unit.id + unit.layer_name, key))
                made.append(mutant)
    return tuple(sorted(made, key=lambda mutant: mutant.span))


_Text = tuple[Path, str, ast.Expr, bool]
"""Where an expression stands, what it says, its tree, and whether it gives true or false."""


def _expressions(unit: Unit) -> Iterator[_Text]:
    """The expressions of a document, each where it stands."""
    truths = {found.path for found in cel_values(unit.spec) if found.cel.type == BOOL}
    truths.update((*found.path, "cel") for found in slot_values(unit.spec) if found.slot.type == BOOL)
    spoken = {(*found.path, "cel") for found in slot_values(unit.spec) if _name(found.field) in _SPOKEN}
    for path, text in texts_of(unit):
        if path not in spoken and unit.document.positions.has(path):
            try:
                yield path, text, parse(text), path in truths
            except SyntaxProblem:
                continue


def _mutants(unit: Unit, texts: Iterable[_Text], domains: ValueDomains) -> Iterator[Mutant]:
    for path, text, tree, condition in texts:
        yield from _of_expression(unit, path, text, tree, condition, domains)
    yield from _of_values(unit, domains)
    match = _at(unit.document.data, ("spec", "match"))
    if isinstance(match, Mapping):
        yield from _of_match(unit, match)
    precedence = _at(unit.document.data, ("spec", "precedence"))
    if isinstance(precedence, int) and precedence:
        path = ("spec", "precedence")
        yield Mutant(Operator.PRECEDENCE, unit, path, _span(unit, path), str(precedence), "0", 0)


def _of_expression(
    unit: Unit, path: Path, text: str, tree: ast.Expr, condition: bool, domains: ValueDomains
) -> Iterator[Mutant]:
    if path[-1] == "condition":
        span = _span(unit, path)
        yield Mutant(Operator.CONDITION, unit, path, span, _short(text), _ALWAYS, _ALWAYS)
    for change in changes(tree, domains, condition=condition):
        old = change.old
        yield Mutant(
            change.operator,
            unit,
            path,
            unit.document.positions.text_span(path, old.start, old.end),
            _short(text[old.start : old.end]),
            _short(unparse(change.new)),
            unparse(changed(tree, change)),
        )


def _of_values(unit: Unit, domains: ValueDomains) -> Iterator[Mutant]:
    if isinstance(unit.spec, PolicyExceptionSpec):
        return
    for found in slot_values(unit.spec):
        name = _name(found.field)
        if name in _SPOKEN or name in _FIXED or not unit.document.positions.has(found.path):
            continue
        literal = _at(unit.document.data, found.path)
        if isinstance(found.raw, Expression) or _has_expression(literal):
            continue
        decision = f"{unit.target}.{found.field}"
        for operator, path, value in others(found.slot, literal, domains, name):
            whole = (*found.path, *path)
            yield _mutant(unit, operator, whole, value, decision)


def _name(field: str) -> str:
    """The last step of a decision's field: `batch` of `values.batch`."""
    return field.rpartition(".")[2]


def _has_expression(literal: object) -> bool:
    if isinstance(literal, Mapping):
        return "cel" in literal or any(map(_has_expression, literal.values()))
    return isinstance(literal, list) and any(map(_has_expression, literal))


def _of_match(unit: Unit, match: Mapping[str, Any]) -> Iterator[Mutant]:
    for who in ("nodes", "namespaces", "pods"):
        selector = match.get(who)
        if not isinstance(selector, Mapping):
            continue
        path: Path = ("spec", "match", who)
        yield _mutant(unit, Operator.CONDITION, path, {})
        labels: Mapping[str, Any] = selector.get("matchLabels") or {}
        for key, value in labels.items():
            yield _mutant(unit, Operator.SELECTOR, (*path, "matchLabels", key), f"{value}-other")
            if len(labels) > 1:
                kept = {one: text for one, text in labels.items() if one != key}
                yield _mutant(unit, Operator.SELECTOR, (*path, "matchLabels"), kept)
        for at, line in enumerate(selector.get("matchExpressions") or ()):
            here = (*path, "matchExpressions", at)
            yield _mutant(unit, Operator.SELECTOR, (*here, "operator"), _OTHER_OPERATOR[line["operator"]])
            values = line.get("values") or []
            if len(values) > 1:
                for entry in range(len(values)):
                    kept_values = values[:entry] + values[entry + 1 :]
                    yield _mutant(unit, Operator.ENTRY, (*here, "values"), kept_values)


def _mutant(unit: Unit, operator: Operator, path: Path, value: object, decision: str = "") -> Mutant:
    before = _at(unit.document.data, path)
    return Mutant(operator, unit, path, _span(unit, path), _written(before), _written(value), value, decision)


def _at(data: Any, path: Path) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _span(unit: Unit, path: Path) -> Any:
    return unit.document.positions.value(path)


def _written(value: object) -> str:
    return _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    """The text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
