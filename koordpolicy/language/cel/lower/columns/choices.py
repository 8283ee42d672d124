"""Choices between lists, maps and optionals: what is asked of them is asked of each branch instead.

A parameter that a pool of nodes has to itself is a choice: `pool ? {cpu: 80%} : {cpu: 65%}`. No column
holds maps, but `(pool ? a : b)[k]` means `pool ? a[k] : b[k]`, and numbers have columns. Only a strict
operand is spread so: the operation fails with the condition, and so does the choice. A lazy operand's condition may
never be asked.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import rewrite, walk
from koordpolicy.language.cel.lower.columns.symbols import kind_of
from koordpolicy.language.cel.walk import strict_children, with_children

_MAX_BRANCHES: Final = 16
"""Branches that one operation may be asked of."""

_MAX_COPIES: Final = 500
"""Copies that may be made in one expression."""

_MAX_TEST: Final = 50
"""Nodes of conditions that are compared; longer ones count as different."""

WriteOut = Callable[[ir.Comprehension], ir.Node | None]
"""Writes out a macro over a constant; None where it stays a macro."""


def spread_choices(root: ir.Node, write_out: WriteOut) -> ir.Node:
    """The expression with operations on choices moved into their branches."""
    copies = 0

    def change(node: ir.Node) -> ir.Node:
        nonlocal copies
        if isinstance(node, ir.Cond):
            return _settled(node)
        operand = _choice_among(node)
        if operand is None or copies >= _MAX_COPIES or _branches(operand) > _MAX_BRANCHES:
            return node
        spread = _into_branches(node, operand, operand)
        copies += 0 if spread is None else _branches(operand)
        return node if spread is None else spread

    def _into_branches(node: ir.Node, whole: ir.Cond, branch: ir.Node) -> ir.Node | None:
        """The node with the choice replaced by a branch of it, branch by branch."""
        if isinstance(branch, ir.Cond):
            then = _into_branches(node, whole, branch.then)
            otherwise = _into_branches(node, whole, branch.otherwise)
            if then is None or otherwise is None:
                return None
            return _settled(ir.Cond(node.type, branch.condition, then, otherwise))
        if isinstance(node, ir.Comprehension):
            # Two copies of a macro would share the names of its variables, so that it is written out at once.
            return write_out(replace(node, range=branch))
        return change(with_children(node, lambda part: branch if part is whole else part))

    return rewrite(root, change)


def _choice_among(node: ir.Node) -> ir.Cond | None:
    """The first operand that is surely evaluated and a choice between values no column holds."""
    if not isinstance(node, _SPREAD):
        return None
    operands = strict_children(node)
    return next((one for one in operands if isinstance(one, ir.Cond) and kind_of(one.type) is None), None)


_SPREAD = (ir.Call, ir.Index, ir.Select, ir.Comprehension, ir.OrElse)
"""What is asked of choices. Literals are not: they may hold choices of their own."""


def _branches(node: ir.Node) -> int:
    """How many branches a choice has, choices within it included; counted as far as it matters."""
    count, stack = 0, [node]
    while stack and count <= _MAX_BRANCHES:
        part = stack.pop()
        if isinstance(part, ir.Cond):
            stack += (part.then, part.otherwise)
        else:
            count += 1
    return count + len(stack)


def _settled(node: ir.Cond) -> ir.Cond:
    """A choice within a branch that has the same condition is decided already."""
    then, otherwise = node.then, node.otherwise
    while isinstance(then, ir.Cond) and _same(then.condition, node.condition):
        then = then.then
    while isinstance(otherwise, ir.Cond) and _same(otherwise.condition, node.condition):
        otherwise = otherwise.otherwise
    if then is node.then and otherwise is node.otherwise:
        return node
    return replace(node, then=then, otherwise=otherwise)


def _same(one: ir.Node, other: ir.Node) -> bool:
    if one is other:
        return True
    sizes = (sum(1 for _, _ in zip(walk(part), range(_MAX_TEST + 1), strict=False)) for part in (one, other))
    return all(size <= _MAX_TEST for size in sizes) and one == other
