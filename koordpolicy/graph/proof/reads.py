"""What expressions read of their input, and the constants that they hold it against."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.permitted import Permitted
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Duration, Optional, Timestamp
from koordpolicy.language.cel.walk import children

MOST_CONSTANTS = 60
"""Constants of one type that are kept: those of the differing parts come first."""

_AFFIXES = frozenset(("startsWith", "endsWith", "contains", "split", "matches", ".matches"))


@dataclass(slots=True)
class Reads:
    """Facts and constants of expressions.

    `facts` are (root, path) of records that questions come with, path "" for a root that is a fact; `elements` are
    (record, path) of records in lists. `keys` are texts that maps are asked for; with `any_key` all texts may be.
    """

    facts: dict[tuple[str, str], None] = field(default_factory=dict)
    elements: dict[tuple[str, str], None] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    integers: dict[int, None] = field(default_factory=dict)
    doubles: dict[float, None] = field(default_factory=dict)
    texts: dict[str, None] = field(default_factory=dict)
    affixes: dict[str, None] = field(default_factory=dict)
    patterns: dict[str, None] = field(default_factory=dict)
    durations: dict[int, None] = field(default_factory=dict)
    moments: dict[int, None] = field(default_factory=dict)
    any_key: bool = False

    def constant(self, value: Any) -> None:
        """Keep a constant, and what it holds."""
        match value:
            case bool() | None:
                pass
            case int():
                _keep(self.integers, int(value))
            case float():
                _keep(self.doubles, value)
            case str():
                _keep(self.texts, value)
            case Duration(ns=ns):
                _keep(self.durations, ns)
            case Timestamp(ns=ns):
                _keep(self.moments, ns)
            case Optional():
                self.constant(value.value)
            case dict():
                for key, held in list(value.items())[:MOST_CONSTANTS]:
                    if isinstance(key, str):
                        _keep(self.keys, key)
                    self.constant(key)
                    self.constant(held)
            case list() | tuple():
                for held in value[:MOST_CONSTANTS]:
                    self.constant(held)
            case _:
                pass


def reads_of(expressions: Iterable[ir.Node]) -> Reads:
    """What the expressions read, those that come first before others."""
    found = Reads()
    for expression in expressions:
        for node in walk(expression):
            _node(found, node)
    return found


def _node(found: Reads, node: ir.Node) -> None:
    match node:
        case ir.Const(value=value):
            found.constant(value)
        case ir.Var(name=name, local=False) if node.type.record is None:
            found.facts[name, ""] = None
        case ir.Field(base=base, path=path) | ir.OptField(base=base, path=path):
            _fact(found, base, path)
        case ir.HasField(base=base, paths=paths):
            for path in paths:
                _fact(found, base, path)
        case ir.Select(field=key):
            _keep(found.keys, key)
        case ir.Index(index=index):
            # It may be one of several: `m[? a ? 'x' : 'y']`.
            for part in walk(index):
                if isinstance(part, ir.Const) and isinstance(part.value, str):
                    _keep(found.keys, part.value)
            found.any_key = found.any_key or not isinstance(index, ir.Const)
        case ir.Cast(permitted=Permitted() as permitted):
            _permitted(found, permitted, node.type)
        case ir.Call(overload=overload, args=args):
            name = overload.partition("(")[0]
            if name in _AFFIXES and len(args) == 2 and isinstance(args[1], ir.Const):
                kept = found.patterns if name.endswith("matches") else found.affixes
                _keep(kept, str(args[1].value))
            elif name == "@in" and isinstance(args[0], ir.Const) and isinstance(args[0].value, str):
                _keep(found.keys, args[0].value)
            elif name == "@in" and isinstance(args[0], ir.Var):
                found.any_key = True


def _permitted(found: Reads, permitted: Permitted, kind: Type) -> None:
    """The edges of what a place takes."""
    for text in permitted.choices:
        found.constant(text)
    for bound in (permitted.low, permitted.high):
        if isfinite(bound):
            found.constant(Duration(int(bound)) if "Duration" in kind.name else bound)
            found.constant(int(bound))


def _fact(found: Reads, base: ir.Node, path: str) -> None:
    if isinstance(base, ir.Var) and not base.local:
        found.facts[base.name, path] = None
    else:
        kind = base.type.params[0] if base.type.name == "optional_type" and base.type.params else base.type
        if kind.record is not None:
            found.elements[kind.record, path] = None


def _keep(kept: dict[Any, None], value: Any) -> None:
    if len(kept) < MOST_CONSTANTS:
        kept[value] = None


def differing_parts(left: ir.Node, right: ir.Node) -> tuple[ir.Node, ...]:
    """The smallest parts in which two expressions are not the same, left and right in turns."""
    found: list[ir.Node] = []
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if one == other:
            continue
        parts = list(_paired(one, other))
        if parts:
            waiting += parts
        else:
            found += (one, other)
    return tuple(found)


def _paired(one: ir.Node, other: ir.Node) -> Iterator[tuple[ir.Node, ir.Node]]:
    """The operands of two nodes that are alike but for these; nothing where they are not."""
    mine, yours = children(one), children(other)
    alike = type(one) is type(other) and len(mine) == len(yours) and _own(one) == _own(other)
    if alike:
        yield from ((a, b) for a, b in zip(mine, yours, strict=True) if a != b)


def _own(node: ir.Node) -> object:
    match node:
        case ir.Call():
            return node.overload
        case ir.Field() | ir.OptField():
            return node.path
        case ir.Comprehension():
            return node.macro
        case ir.Select():
            return node.field
        case ir.Cast():
            return node.permitted
    return None


def type_of_element(kind: Type) -> Type | None:
    """The type of a list's elements."""
    return kind.params[0] if kind.name == "list" and kind.params else None
