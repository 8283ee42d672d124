"""The inputs on which a condition holds, as boxes over facts.

A condition in disjunctive form is a list of boxes; a box gives each fact it speaks of a domain and
keeps what it cannot read as `opaque`. Boxes are exact but for their opaque part.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from koordpolicy.graph.analysis.domain import (
    ABSENT,
    NOTHING,
    PRESENT,
    Domain,
    Scalar,
    between,
    one_of,
)
from koordpolicy.graph.analysis.facts import bounds_of
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import INT_MAX, INT_MIN

MAX_BOXES = 16
"""Beyond this many alternatives the rest of a condition is treated as opaque."""


@dataclass(frozen=True, slots=True)
class FactKey:
    """A fact, or one key of a map-typed fact: `node.labels` with key `pool`."""

    root: str
    path: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """A conjunction: a domain for each place, and what could not be read."""

    domains: dict[FactKey, Domain] = field(default_factory=dict)
    opaque: tuple[ir.Node, ...] = ()

    def meet(self, other: "Box") -> "Box | None":
        """The inputs in both, or None when they exclude each other."""
        merged = dict(self.domains)
        for place, domain in other.domains.items():
            met = merged[place].meet(domain) if place in merged else domain
            if met is None or met.is_empty:
                return None
            merged[place] = met
        return Box(merged, self.opaque + other.opaque)


EVERYTHING = Box()


def boxes(condition: ir.Node | None) -> list[Box]:
    """The boxes of a condition; an empty list means that it can never hold."""
    if condition is None:
        return [EVERYTHING]
    return _boxes(condition, positive=True)


def boxes_without(condition: ir.Node) -> list[Box]:
    """The boxes where a condition does not hold; an empty list means that it always does."""
    return _boxes(condition, positive=False)


def meets(left: Iterable[Box], right: Iterable[Box]) -> list[Box]:
    """All non-empty intersections of two regions, at most `MAX_BOXES`."""
    rights = list(right)
    found = [met for a in left for b in rights if (met := a.meet(b)) is not None]
    return found[:MAX_BOXES]


def _boxes(node: ir.Node, *, positive: bool) -> list[Box]:
    match node:
        case ir.Const(value=bool() as holds):
            return [EVERYTHING] if holds == positive else []
        case ir.And(args=args) | ir.Or(args=args):
            if isinstance(node, ir.And) == positive:
                return _conjunction(args, node, positive=positive)
            union = [box for arg in args for box in _boxes(arg, positive=positive)]
            return union if len(union) <= MAX_BOXES else [_opaque(node, positive=positive)]
        case ir.Holds(operand=operand):
            return _boxes(operand, positive=positive)
        case ir.Call(overload=overload, args=(operand,)) if overload.startswith("!_"):
            return _boxes(operand, positive=not positive)
        case _:
            atom = _atom(node, positive=positive)
            if atom is None:
                return [_opaque(node, positive=positive)]
            return [] if any(domain.is_empty for domain in atom.domains.values()) else [atom]


def _conjunction(args: tuple[ir.Node, ...], node: ir.Node, *, positive: bool) -> list[Box]:
    region = [EVERYTHING]
    for arg in args:
        region = [
            met
            for box in region
            for other in _boxes(arg, positive=positive)
            if (met := box.meet(other)) is not None
        ]
        if len(region) > MAX_BOXES:
            return [_opaque(node, positive=positive)]
    return region


def _opaque(node: ir.Node, *, positive: bool) -> Box:
    held = node if positive else ir.Call(node.type, "!_(bool)", (node,), start=node.start)
    return Box({}, (held,))


def place_of(node: ir.Node) -> FactKey | None:
    """The place an expression reads, if it is one."""
    match node:
        case ir.Field(base=ir.Var(name=root, local=False), path=path):
            return FactKey(root, path)
        case ir.Select(operand=operand, field=key, optional=False):
            inner = place_of(operand)
            return FactKey(inner.root, inner.path, key) if inner and inner.key is None else None
        case ir.Index(operand=operand, index=ir.Const(value=str() as key), optional=False):
            inner = place_of(operand)
            return FactKey(inner.root, inner.path, key) if inner and inner.key is None else None
        case _:
            return None


def _defaulted(node: ir.Node) -> tuple[FactKey, object] | None:
    """The place that `m[?'k'].orValue(c)` or `r.?f.orValue(c)` reads, and the constant that stands for what is absent."""
    match node:
        case ir.OrElse(
            operand=ir.OptField(base=ir.Var(name=root, local=False), path=path),
            other=ir.Const(value=other),
            unwrap=True,
        ):
            return FactKey(root, path), other
        case ir.OrElse(
            operand=ir.Index(operand=held, index=ir.Const(value=str() as key), optional=True)
            | ir.Select(operand=held, field=str() as key, optional=True),
            other=ir.Const(value=other),
            unwrap=True,
        ):
            inner = place_of(held)
            return (FactKey(inner.root, inner.path, key), other) if inner and inner.key is None else None
    return None


_MIRRORED = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_", "_==_": "_==_", "_!=_": "_!=_"}
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "_<_": lt, "_<=_": le, "_>_": gt, "_>=_": ge, "_==_": eq, "_!=_": ne,
}  # fmt: skip
_NEGATED = {"_<_": "_>=_", "_<=_": "_>_", "_>_": "_<=_", "_>=_": "_<_", "_==_": "_!=_", "_!=_": "_==_"}


def _atom(node: ir.Node, *, positive: bool) -> Box | None:
    match node:
        case ir.Select(test=True, operand=operand, field=key):
            inner = place_of(operand)
            if inner is None or inner.key is not None:
                return None
            return Box({FactKey(inner.root, inner.path, key): PRESENT if positive else ABSENT})
        case ir.HasField(base=ir.Var(name=root, local=False), paths=(path,)):
            return Box({FactKey(root, path): PRESENT if positive else ABSENT})
        case ir.Call(overload=overload, args=(left, right)):
            operator = overload.partition("(")[0]
            if operator == "@in":
                return _membership(left, right, positive=positive)
            if operator in _MIRRORED:
                return _comparison(operator, left, right, positive=positive)
            return None
        case _:
            place = place_of(node)
            if place is None or node.type.name != "bool":
                return None
            return Box({place: one_of(frozenset({positive}))})


def _comparison(operator: str, left: ir.Node, right: ir.Node, *, positive: bool) -> Box | None:
    if isinstance(left, ir.Const):
        operator, left, right = _MIRRORED[operator], right, left
    if not positive:
        operator = _NEGATED[operator]
    place, default = place_of(left), None
    if place is None:
        place, default = _defaulted(left) or (None, None)
    if place is None or not isinstance(right, ir.Const):
        return None
    value = right.value
    if not isinstance(value, int | float | str | bool):
        return None
    if default is not None and (type(default) is not type(value) or _COMPARED[operator](default, value)):
        return None  # it holds where nothing is, too
    domain = _compared(operator, value)
    within = None if domain is None else domain.meet(_possible(place, left.type))
    return None if domain is None else Box({place: within or NOTHING})


def _possible(place: FactKey, kind: Type) -> Domain:
    """What a fact can be by what it is: a capacity is never below zero."""
    if place.key is not None or not kind.is_number:
        return Domain()
    low, high = bounds_of(place.root, place.path, kind)
    return Domain(low=-inf if low == INT_MIN else low, high=inf if high == INT_MAX else high)


def _compared(operator: str, value: Scalar) -> Domain | None:
    if operator == "_==_":
        return one_of(frozenset({value}))
    if operator == "_!=_":
        return PRESENT.without(value)
    if isinstance(value, str | bool):
        return None
    interval: dict[str, Callable[[], Domain]] = {
        "_<_": lambda: between(-inf, value, high_open=True),
        "_<=_": lambda: between(-inf, value),
        "_>_": lambda: between(value, inf, low_open=True),
        "_>=_": lambda: between(value, inf),
    }
    return interval[operator]()


def _membership(needle: ir.Node, haystack: ir.Node, *, positive: bool) -> Box | None:
    """`x in [..]` for a place, and `'key' in map` for a map-typed fact."""
    place = place_of(haystack)
    if place is not None and place.key is None and isinstance(needle, ir.Const):
        if isinstance(needle.value, str):
            return Box({FactKey(place.root, place.path, needle.value): PRESENT if positive else ABSENT})
        return None
    values = _constants(haystack)
    if _length(haystack) == 0:
        return Box({FactKey("", ""): NOTHING}) if positive else EVERYTHING
    place = place_of(needle)
    if place is None and positive and values is not None:
        found = _defaulted(needle)
        place = found[0] if found is not None and found[1] not in values else None
    if values is None or place is None:
        return None
    return Box({place: one_of(values) if positive else Domain(present=True, excluded=values)})


def _length(node: ir.Node) -> int:
    """How many elements a written list has; -1 for another."""
    match node:
        case ir.Const(value=list() | tuple() as values):
            return len(values)
        case ir.MakeList(elements=elements):
            return len(elements)
    return -1


def _constants(node: ir.Node) -> frozenset[Scalar] | None:
    items: Iterable[object]
    match node:
        case ir.Const(value=list() | tuple() as values):
            items = values
        case ir.MakeList(elements=elements) if all(isinstance(e, ir.Const) for e in elements):
            items = [element.value for element in elements if isinstance(element, ir.Const)]
        case _:
            return None
    scalars = [item for item in items if isinstance(item, int | float | str | bool)]
    return frozenset(scalars)
