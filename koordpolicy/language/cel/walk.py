"""Going through the typed form: parts of a node, and the same node with other parts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.language.cel import ir

CHILDREN: Final[Mapping[type[ir.Node], Callable[[Any], tuple[ir.Node, ...]]]] = MappingProxyType(
    {
        ir.Call: attrgetter("args"),
        ir.And: attrgetter("args"),
        ir.Or: attrgetter("args"),
        ir.Field: lambda node: (node.base,),
        ir.HasField: lambda node: (node.base,),
        ir.OptField: lambda node: (node.base,),
        ir.Select: lambda node: (node.operand,),
        ir.Cast: lambda node: (node.operand,),
        ir.Holds: attrgetter("operand", "otherwise"),
        ir.Index: attrgetter("operand", "index"),
        ir.Cond: attrgetter("condition", "then", "otherwise"),
        ir.OrElse: attrgetter("operand", "other"),
        ir.MakeList: attrgetter("elements"),
        ir.MakeMap: lambda node: tuple(part for entry in node.entries for part in entry),
        ir.Comprehension: lambda node: tuple(
            part for part in (node.range, node.predicate, node.transform) if part is not None
        ),
        ir.Bind: attrgetter("init", "body"),
        ir.OptMap: attrgetter("operand", "body"),
    }
)
"""By class, since compiling asks it of every node many times. What is not here is a leaf."""


def children(node: ir.Node) -> tuple[ir.Node, ...]:
    """The subexpressions of a node in order of evaluation."""
    parts = CHILDREN.get(type(node))
    return () if parts is None else parts(node)


def strict_children(node: ir.Node) -> tuple[ir.Node, ...]:
    """The subexpressions that the node fails with: where one has no value, neither has the node.

    All others are lazy: not always evaluated, or their errors absorbed. Whatever moves code (lifting
    a conditional, hoisting) may move it out of strict operands only.
    """
    match node:
        case ir.And() | ir.Or() | ir.Holds():
            return ()
        case ir.Cond(condition=condition):
            return (condition,)
        case ir.Comprehension(range=walked):
            return (walked,)
        case ir.OrElse(operand=operand) | ir.OptMap(operand=operand):
            return (operand,)
        case ir.Bind(body=body):
            return (body,)
    return children(node)


def with_children(node: ir.Node, change: Callable[[ir.Node], ir.Node]) -> ir.Node:
    """The node with `change` applied to each subexpression; the node itself when none differs."""
    match node:
        case ir.Call(args=args) | ir.And(args=args) | ir.Or(args=args):
            changed = tuple(map(change, args))
            return node if _same(args, changed) else replace(node, args=changed)
        case ir.Field(base=base) | ir.HasField(base=base) | ir.OptField(base=base):
            return replace(node, base=change(base))
        case ir.Select(operand=operand) | ir.Cast(operand=operand):
            return replace(node, operand=change(operand))
        case ir.Index(operand=operand, index=index):
            return replace(node, operand=change(operand), index=change(index))
        case ir.Cond():
            return replace(
                node,
                condition=change(node.condition),
                then=change(node.then),
                otherwise=change(node.otherwise),
            )
        case ir.Holds(operand=operand, otherwise=otherwise):
            return replace(node, operand=change(operand), otherwise=change(otherwise))
        case ir.OrElse(operand=operand, other=other):
            return replace(node, operand=change(operand), other=change(other))
        case ir.MakeList(elements=elements):
            return replace(node, elements=tuple(map(change, elements)))
        case ir.MakeMap(entries=entries):
            return replace(node, entries=tuple((change(key), change(value)) for key, value in entries))
        case ir.Comprehension():
            return replace(
                node,
                range=change(node.range),
                predicate=None if node.predicate is None else change(node.predicate),
                transform=None if node.transform is None else change(node.transform),
            )
        case ir.Bind(init=init, body=body):
            return replace(node, init=change(init), body=change(body))
        case ir.OptMap(operand=operand, body=body):
            return replace(node, operand=change(operand), body=change(body))
    return node


def _same(one: tuple[ir.Node, ...], other: tuple[ir.Node, ...]) -> bool:
    return all(a is b for a, b in zip(one, other, strict=True))
