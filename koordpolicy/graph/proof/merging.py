"""Parts of two expressions that always come to the same, made one part: less is left to compare, and both sides share it."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import number, own_parts
from koordpolicy.language.cel.walk import children, with_children

MOST_PARTS: Final = 60
"""Parts of one pair of expressions of which it is asked whether they are alike."""

_LARGEST: Final = 2_000
"""Nodes of a part, counted as a tree."""


def merged(left: ir.Node, right: ir.Node, alike: Callable[[ir.Node, ir.Node], bool]) -> ir.Node:
    """The right expression with what the left one has in the place of parts that are alike, from the leaves up.

    Parts that are true or false, or conditional, and stand in the same place of both are asked about: `alike` says whether two come to the
    same for all inputs, whatever the local variables are. Those that it does not know of stay.
    """
    table = number([left, right])
    done: dict[tuple[int, int], ir.Node] = {}
    asked = 0
    for one, other in _places(left, right):
        key = id(one), id(other)
        if table.of(one) == table.of(other):
            done[key] = one
            continue
        made, same = other, False
        if _corresponds(one, other):
            mine, yours = children(one), children(other)
            parts = {id(b): done[id(a), id(b)] for a, b in zip(mine, yours, strict=True)}
            if any(parts[id(part)] is not part for part in yours):
                made = with_children(other, partial(_part_of, parts))
            same = all(part is kept for part, kept in zip(children(made), mine, strict=True))
        if not same and _may_be_alike(one, other) and one is not left:
            asked += 1
            small = max(table.weight[table.of(one)], table.weight[table.of(other)]) <= _LARGEST
            same = small and asked <= MOST_PARTS and alike(one, made)
        done[key] = one if same else made
    return done[id(left), id(right)]


def _part_of(parts: Mapping[int, ir.Node], child: ir.Node) -> ir.Node:
    return parts[id(child)]


def _places(left: ir.Node, right: ir.Node) -> Iterator[tuple[ir.Node, ir.Node]]:
    """Pairs of nodes that stand in the same place, operands before what uses them."""
    seen: set[tuple[int, int]] = set()
    stack = [(left, right, False)]
    while stack:
        one, other, ready = stack.pop()
        key = id(one), id(other)
        if ready:
            yield one, other
        elif key not in seen:
            seen.add(key)
            stack.append((one, other, True))
            if _corresponds(one, other):
                stack += ((a, b, False) for a, b in zip(children(one), children(other), strict=True))


def _may_be_alike(one: ir.Node, other: ir.Node) -> bool:
    """Whether two parts that are not the same are worth asking about."""
    if isinstance(one, ir.Cond) and isinstance(other, ir.Cond):
        return one.type == other.type
    return one.type.name == other.type.name == "bool"


def _corresponds(one: ir.Node, other: ir.Node) -> bool:
    """Whether two nodes are alike but for their operands."""
    return (
        type(one) is type(other)
        and one.type == other.type
        and len(children(one)) == len(children(other))
        and own_parts(one) == own_parts(other)
    )
