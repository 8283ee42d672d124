"""Measures and changes of typed forms that the checker needs. None recurses, none visits a node twice."""

from collections.abc import Callable
from dataclasses import replace

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import rewrite, walk
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.walk import children


def size(root: ir.Node) -> int:
    """How many nodes an expression has."""
    return sum(1 for _ in walk(root))


def depth(root: ir.Node) -> int:
    """How many levels an expression has."""
    levels: dict[int, int] = {}
    for node in walk(root):
        levels[id(node)] = 1 + max((levels[id(child)] for child in children(node)), default=0)
    return levels[id(root)]


def with_types(root: ir.Node, change: Callable[[Type], Type]) -> ir.Node:
    """The expression with every type replaced."""

    def changed(node: ir.Node) -> ir.Node:
        type = change(node.type)
        return node if type == node.type else replace(node, type=type)

    return rewrite(root, changed)


def placed(root: ir.Node, start: int, end: int) -> ir.Node:
    """The expression with all of it at one place: what stands for a call, seen from the text of the call."""
    return rewrite(root, lambda node: replace(node, start=start, end=end))


def renamed_locals(root: ir.Node, rename: Callable[[str], str]) -> ir.Node:
    """The expression with every local variable renamed, where it is bound and where it is used."""

    def changed(node: ir.Node) -> ir.Node:
        match node:
            case ir.Var(name=name, local=True):
                return replace(node, name=rename(name))
            case ir.Comprehension(variables=variables):
                return replace(node, variables=tuple(map(rename, variables)))
            case ir.Bind(name=name) | ir.OptMap(name=name):
                return replace(node, name=rename(name))
        return node

    return rewrite(root, changed)
