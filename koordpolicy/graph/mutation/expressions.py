"""What may go wrong within one expression."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from koordpolicy.graph.mutation.domains import ValueDomains, name_of
from koordpolicy.graph.mutation.operators import Operator
from koordpolicy.language.cel import ast
from koordpolicy.language.cel.types import BOOL, DOUBLE, INT, STRING, UINT
from koordpolicy.language.facts import FACTS, ROOTS, Fact

_COMPARISONS = {
    "_<_": (("_<=_", Operator.BOUNDARY), ("_>=_", Operator.COMPARISON)),
    "_<=_": (("_<_", Operator.BOUNDARY), ("_>_", Operator.COMPARISON)),
    "_>_": (("_>=_", Operator.BOUNDARY), ("_<=_", Operator.COMPARISON)),
    "_>=_": (("_>_", Operator.BOUNDARY), ("_<_", Operator.COMPARISON)),
    "_==_": (("_!=_", Operator.COMPARISON),),
    "_!=_": (("_==_", Operator.COMPARISON),),
}
_ARITHMETIC = {"_+_": "_-_", "_-_": "_+_", "_*_": "_/_", "_/_": "_*_", "_%_": "_/_"}
_LOGIC = {"_&&_": "_||_", "_||_": "_&&_"}
_DECIDED = frozenset((*_COMPARISONS, *_LOGIC, "!_", "@in"))
"""What has mutants of its own instead of a negation."""

_EXCHANGED = {
    "min": "max", "max": "min", "least": "greatest", "greatest": "least", "ceil": "floor", "floor": "ceil",
    "startsWith": "contains", "endsWith": "contains", "contains": "startsWith", "exists": "all", "all": "exists",
    "exists_one": "exists", "getHours": "getMinutes", "getMinutes": "getSeconds", "getDayOfWeek": "getDate",
    "getDate": "getDayOfMonth", "getDayOfMonth": "getDate", "getMonth": "getDayOfMonth", "getFullYear": "getMonth",
}  # fmt: skip
_BOUNDS = frozenset(("min", "max", "least", "greatest"))
_MIRRORED = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_"}
_ORDERED = frozenset(("_-_", "_/_", "_%_"))
"""Operators whose operands cannot be exchanged."""

_PREDICATES = frozenset(("all", "exists", "exists_one", "filter"))
_AMOUNTS = frozenset(("cpu", "memory", "bandwidth", "duration", "quantity", "timestamp"))
"""Functions that read an amount from a text."""

_MOST_ENTRIES = 6
"""Entries of a list that are left out, one at a time."""

_SENTENCE = re.compile(r"\s")
"""Texts for people have spaces in them; a slip in one changes no decision."""


@dataclass(frozen=True, slots=True)
class ExpressionChange:
    """One changed part: `new` in the place of `old`, which is a node of the tree."""

    operator: Operator
    old: ast.Expr
    new: ast.Expr


def changes(tree: ast.Expr, domains: ValueDomains, *, condition: bool) -> Iterator[ExpressionChange]:
    """The changes of an expression, outer ones first; `condition` tells that it gives true or false."""
    waiting: list[tuple[ast.Expr, str, bool]] = [(tree, "", condition)]
    while waiting:
        node, name, decides = waiting.pop()
        yield from _changes(node, domains, name, decides)
        if domains.thorough and decides:
            yield from _of_truth(node)
        waiting.extend(reversed(list(_parts(node))))


def changed(tree: ast.Expr, change: ExpressionChange) -> ast.Expr:
    """The expression with the change made. Recursion is bounded by the tree's depth."""
    if tree is change.old:
        return change.new
    match tree:
        case ast.SelectExpr(operand=operand):
            return replace(tree, operand=changed(operand, change))
        case ast.IndexExpr(operand=operand, index=index):
            return replace(tree, operand=changed(operand, change), index=changed(index, change))
        case ast.CallExpr(args=args, target=target):
            return replace(
                tree,
                args=tuple(changed(argument, change) for argument in args),
                target=None if target is None else changed(target, change),
            )
        case ast.ListLiteral(elements=elements):
            return replace(tree, elements=tuple(changed(element, change) for element in elements))
        case ast.MapLiteral(entries=entries):
            pairs = tuple((changed(key, change), changed(value, change)) for key, value in entries)
            return replace(tree, entries=pairs)
    return tree


def _parts(node: ast.Expr) -> Iterator[tuple[ast.Expr, str, bool]]:
    """The parts of a node, with the name of what each is compared with, and whether it is true or false."""
    match node:
        case ast.CallExpr(function="_&&_" | "_||_" | "!_", args=args, target=None):
            yield from ((argument, "", True) for argument in args)
        case ast.CallExpr(function="_?_:_", args=(condition, then, otherwise), target=None):
            yield from ((condition, "", True), (then, "", False), (otherwise, "", False))
        case ast.CallExpr(function="_==_" | "_!=_" | "@in", args=(left, right), target=None):
            yield from ((left, name_of(right), False), (right, name_of(left), False))
        case ast.CallExpr(function="orValue", target=ast.Expr() as target, args=(other,)):
            yield from ((target, "", False), (other, name_of(target), False))
        case ast.CallExpr(function=function, target=ast.Expr() as target, args=(_, *rest)) if (
            function in _PREDICATES and rest
        ):
            yield target, "", False
            yield from ((argument, "", argument is rest[-1]) for argument in rest)
        case ast.CallExpr(function=function, args=(ast.Literal(value=str()),), target=None) if (
            function in _AMOUNTS
        ):
            return
        case ast.SelectExpr(test=True):
            return
        case _:
            yield from ((part, "", False) for part in ast.children(node))


def _changes(node: ast.Expr, domains: ValueDomains, name: str, decides: bool) -> Iterator[ExpressionChange]:
    match node:
        case ast.Literal():
            yield from _literal(node, domains, name)
        case ast.ListLiteral():
            yield from _entries(node)
        case ast.SelectExpr():
            yield from _fact(node)
        case ast.CallExpr(target=None):
            yield from _operator(node, domains)
        case ast.CallExpr():
            yield from _method(node)
    if decides and not (isinstance(node, ast.Literal) or _is_decided(node)):
        yield ExpressionChange(Operator.NEGATION, node, _call(node, "!_", node))


def _of_truth(node: ast.Expr) -> Iterator[ExpressionChange]:
    """What is asked is always so, or never, or answered the other way round."""
    if isinstance(node, ast.Literal):
        return
    for value in (True, False):
        yield ExpressionChange(Operator.TRUTH, node, ast.Literal(node.start, node.end, BOOL, value))
    if not isinstance(node, ast.CallExpr):
        return
    if node.function in _LOGIC:
        yield ExpressionChange(Operator.NEGATION, node, _call(node, "!_", node))
    if node.function in _MIRRORED:
        yield ExpressionChange(Operator.COMPARISON, node, replace(node, function=_MIRRORED[node.function]))


def _is_decided(node: ast.Expr) -> bool:
    return isinstance(node, ast.CallExpr) and node.function in _DECIDED


def _call(at: ast.Expr, function: str, *args: ast.Expr) -> ast.CallExpr:
    return ast.CallExpr(at.start, at.end, function, args)


def _operator(node: ast.CallExpr, domains: ValueDomains) -> Iterator[ExpressionChange]:
    function, args = node.function, node.args
    for other, operator in _COMPARISONS.get(function, ()):
        yield ExpressionChange(operator, node, replace(node, function=other))
    if function in _ARITHMETIC and len(args) == 2:
        yield ExpressionChange(Operator.ARITHMETIC, node, replace(node, function=_ARITHMETIC[function]))
        yield from (ExpressionChange(Operator.TERM, node, argument) for argument in args)
    if function in _ORDERED and len(args) == 2:
        yield ExpressionChange(Operator.OPERANDS, node, replace(node, args=args[::-1]))
    if function in _LOGIC:
        yield ExpressionChange(Operator.LOGIC, node, replace(node, function=_LOGIC[function]))
        yield from (ExpressionChange(Operator.GUARD, node, kept) for kept in args)
    if function in ("!_", "-_"):
        yield ExpressionChange(Operator.NEGATION, node, args[0])
    if function == "_?_:_":
        condition, then, otherwise = args
        yield ExpressionChange(Operator.ARM, node, replace(node, args=(condition, otherwise, then)))
        yield ExpressionChange(Operator.ARM, node, then)
        yield ExpressionChange(Operator.ARM, node, otherwise)
    if function == "@in":
        yield ExpressionChange(Operator.NEGATION, node, _call(node, "!_", node))
    if function in _EXCHANGED:
        yield ExpressionChange(Operator.FUNCTION, node, replace(node, function=_EXCHANGED[function]))
    yield from _bounds(node)
    if function in _AMOUNTS and len(args) == 1:
        yield from _amount(node, args[0], domains)


def _bounds(node: ast.CallExpr) -> Iterator[ExpressionChange]:
    """A least or greatest value without one of those that it is chosen from."""
    if node.function not in _BOUNDS or len(node.args) < 2:
        return
    for at in range(min(len(node.args), _MOST_ENTRIES)):
        kept = node.args[:at] + node.args[at + 1 :]
        yield ExpressionChange(Operator.BOUND, node, kept[0] if len(kept) == 1 else replace(node, args=kept))


def _amount(node: ast.CallExpr, argument: ast.Expr, domains: ValueDomains) -> Iterator[ExpressionChange]:
    if isinstance(argument, ast.Literal) and isinstance(argument.value, str):
        for operator, text in domains.amounts(argument.value, time=node.function == "duration"):
            yield ExpressionChange(operator, node, replace(node, args=(replace(argument, value=text),)))


def _method(node: ast.CallExpr) -> Iterator[ExpressionChange]:
    assert node.target is not None
    if node.function in _EXCHANGED:
        yield ExpressionChange(Operator.FUNCTION, node, replace(node, function=_EXCHANGED[node.function]))
    yield from _bounds(node)
    if node.function == "orValue":
        yield ExpressionChange(Operator.PRESENCE, node, replace(node, function="value", args=()))
    if node.function == "filter":
        yield ExpressionChange(Operator.FILTER, node, node.target)


def _entries(node: ast.ListLiteral) -> Iterator[ExpressionChange]:
    if node.optional:
        return
    for at in range(min(len(node.elements), _MOST_ENTRIES)):
        yield ExpressionChange(
            Operator.ENTRY, node, replace(node, elements=node.elements[:at] + node.elements[at + 1 :])
        )


def _literal(node: ast.Literal, domains: ValueDomains, name: str) -> Iterator[ExpressionChange]:
    value = node.value
    if node.type == BOOL:
        yield ExpressionChange(Operator.TRUTH, node, replace(node, value=not value))
    elif node.type in (INT, UINT, DOUBLE) and isinstance(value, int | float):
        least = 0 if node.type == UINT else None
        for number in domains.numbers(value, least):
            yield ExpressionChange(Operator.NUMBER, node, replace(node, value=number))
    elif node.type == STRING and isinstance(value, str) and not _SENTENCE.search(value):
        for text in domains.others(name, value):
            yield ExpressionChange(Operator.TEXT, node, replace(node, value=text))


def _fact(node: ast.SelectExpr) -> Iterator[ExpressionChange]:
    """Another fact of the same type beside it; of a question whether it is there, that it always is."""
    if node.test:
        yield ExpressionChange(Operator.PRESENCE, node, ast.Literal(node.start, node.end, BOOL, True))
    qualified = None if node.test or node.optional else ast.qualified_name(node)
    root, _, path = (qualified or "").partition(".")
    record = ROOTS[root].type.record if root in ROOTS else None
    fact = FACTS.resolve(record, path) if record and path else None
    if not isinstance(fact, Fact) or record is None:
        return
    prefix, _, last = path.rpartition(".")
    beside = FACTS.children(record, prefix)
    alike = [step for step in beside if _is_like(record, f"{prefix}.{step}".lstrip("."), fact)]
    for other in _after(alike, last):
        yield ExpressionChange(Operator.FACT, node, replace(node, field=other))
    if prefix:  # the same of another group: `node.usage.total.cpu` for `node.usage.prod.cpu`
        above, _, group = prefix.rpartition(".")
        groups = [
            step
            for step in FACTS.children(record, above)
            if _is_like(record, f"{above}.{step}.{last}".lstrip("."), fact)
        ]
        for other in _after(groups, group):
            operand = node.operand
            if isinstance(operand, ast.SelectExpr):
                yield ExpressionChange(
                    Operator.FACT, node, replace(node, operand=replace(operand, field=other))
                )


def _is_like(record: str, path: str, fact: Fact) -> bool:
    other = FACTS.resolve(record, path)
    return isinstance(other, Fact) and other.type == fact.type


def _after(names: Iterable[str], name: str) -> tuple[str, ...]:
    """The one after a name, in a circle; none where there is no other."""
    known = list(names)
    return (known[(known.index(name) + 1) % len(known)],) if len(known) > 1 and name in known else ()
