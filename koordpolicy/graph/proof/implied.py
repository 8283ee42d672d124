"""What a test says in the arms of its conditional: a fact that it found there is there, one that it missed is not."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import rewrite, walk
from koordpolicy.language.cel.types import BOOL

_MOST_ARMS: Final = 400
"""Arms that are rewritten; each is gone through once for each conditional around it."""


def with_implied(root: ir.Node) -> ir.Node:
    """An expression of the same value, and failing on the same inputs, that asks for no fact twice on one way through it."""
    left = _MOST_ARMS

    def arm(node: ir.Node, known: Mapping[ir.Node, bool]) -> ir.Node:
        nonlocal left
        if not known or left <= 0 or not any(part in known for part in walk(node) if _is_asked(part)):
            return node
        left -= 1
        return rewrite(
            node, lambda part: constant(BOOL, known[part]) if _is_asked(part) and part in known else part
        )

    def change(node: ir.Node) -> ir.Node:
        if not isinstance(node, ir.Cond):
            return node
        then = arm(node.then, implied(node.condition, True))
        otherwise = arm(node.otherwise, implied(node.condition, False))
        same = then is node.then and otherwise is node.otherwise
        return node if same else replace(node, then=then, otherwise=otherwise)

    changed = rewrite(root, change)
    return root if changed is root else fold(changed)


def implied(test: ir.Node, value: bool) -> Mapping[ir.Node, bool]:
    """Which facts are there, and which are not, wherever a test comes to this value."""
    found: dict[ir.Node, bool] = {}
    waiting = [(test, value)]
    while waiting:
        node, holds = waiting.pop()
        if _is_asked(node):
            found[node] = holds
        match node:
            case ir.Call(overload="!_(bool)", args=(operand,)):
                waiting.append((operand, not holds))
            case ir.And(args=args) if holds:
                waiting += ((one, True) for one in args)
            case ir.Or(args=args) if not holds:
                waiting += ((one, False) for one in args)
            case ir.Cond(condition=condition, then=then, otherwise=otherwise):
                # An arm that is always the other value was not taken.
                if _is_always(otherwise, not holds):
                    waiting += ((condition, True), (then, holds))
                elif _is_always(then, not holds):
                    waiting += ((condition, False), (otherwise, holds))
    return found


def _is_asked(node: ir.Node) -> bool:
    """Whether it asks a record that the question comes with: what it says is the same wherever it stands."""
    return isinstance(node, ir.HasField) and isinstance(node.base, ir.Var) and not node.base.local


def _is_always(node: ir.Node, value: bool) -> bool:
    return isinstance(node, ir.Const) and node.value is value
