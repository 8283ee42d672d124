"""Conditions that come out the same whatever is asked: parts that exclude each other, parts of which one always holds (KP214)."""

from collections.abc import Collection
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.failing.assume import Assumptions
from koordpolicy.language.cel.failing.keys import Keys
from koordpolicy.language.cel.failing.known import NOTHING, Atom
from koordpolicy.language.cel.failing.ranges import Ranges
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_change import size

_LONGEST: Final = 500
"""Nodes of a condition that is looked at: each one within another is looked at again."""


def warn_if_settled(context: Context, node: ir.And | ir.Or) -> None:
    """Report `&&` that never holds and `||` that always does, by what their parts say of the same value."""
    if not context.environment.literal_checks or _told(context, node) or size(node) > _LONGEST:
        return
    outcome = _outcome(node)
    if outcome is None:
        return
    help = None
    if outcome is isinstance(node, ir.Or):
        help = (
            "one of its parts always holds: write `&&` where both are meant"
            if outcome
            else "its parts exclude each other: write `||` where either is meant"
        )
    shown = context.text(node)
    context.warn("KP214", f"`{shown}` is always {'true' if outcome else 'false'}", node.start, node.end, help)


def _outcome(node: ir.And | ir.Or) -> bool | None:
    """What it comes to whatever is asked; None where that depends."""
    folded = fold(node)
    if isinstance(folded, ir.Const):
        return folded.value if isinstance(folded.value, bool) else None
    keys = Keys()
    assume = Assumptions(keys, Ranges(keys, bounded=False), _no_atom, _no_roots)
    never = isinstance(node, ir.And)
    return not never if assume.holds(folded, NOTHING, truth=never).impossible else None


def _told(context: Context, node: ir.Node) -> bool:
    """Whether a part of it was reported."""
    return any(node.start <= one.start and one.end <= node.end for one in context.problems)


def _no_atom(node: ir.Node) -> Atom | None:
    del node
    return None


def _no_roots(root: str, texts: Collection[str]) -> Collection[str]:
    del root, texts
    return ()
