"""What becomes of a rule whose condition fails: one meaning, for every kind.

A label or annotation that is not there reads as empty, as in `labels[?'team'].orValue('')`: so an object without the
label is no object of team `a`, and one that is not exempt either. Where that is not what failed, the rule does not apply,
and what stands below it does; of a requirement both have to hold, the rule's and what stands below it, so that a slip
neither switches a protection off nor refuses what fulfils it. Failures are counted by the condition's place (see
`language.cel.unheld`).
"""

from dataclasses import replace
from typing import Final

from koordpolicy.graph.presence import PRESENCE
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.failing import TooManySteps, failures
from koordpolicy.language.cel.ir_walk import inline_binds, rewrite
from koordpolicy.language.cel.types import BOOL, STRING, optional_of

FALSE: Final = constant(BOOL, False)
TRUE: Final = constant(BOOL, True)


def can_fail(test: ir.Node) -> bool:
    """Whether a condition may fail where all facts are there that may not be missing."""
    try:
        return bool(failures(test, PRESENCE, bounded=False))
    except TooManySteps:
        return True


def forgiving(test: ir.Node) -> ir.Node:
    """The condition with missing texts of maps read as empty: where the condition has a value, it has the same."""
    return rewrite(inline_binds(test), _or_empty)


def _or_empty(node: ir.Node) -> ir.Node:
    match node:
        case (
            ir.Select(operand=operand, optional=False, test=False) | ir.Index(operand=operand, optional=False)
        ) if operand.type.name == "map" and operand.type.params[1] == STRING:
            found = replace(node, optional=True, type=optional_of(STRING))
            empty = constant(STRING, "", node.start, node.end)
            return ir.OrElse(STRING, found, empty, unwrap=True, start=node.start, end=node.end)
    return node


def settled(test: ir.Node, clause: str) -> ir.Node:
    """The condition of a value, one that can fail: false where it fails even when forgiven."""
    return ir.Holds(BOOL, test, _or_false(forgiving(test)), clause)


def _or_false(test: ir.Node) -> ir.Node:
    return ir.Holds(BOOL, test, FALSE) if can_fail(test) else test


def required(test: ir.Node, clause: str, value: ir.Node, below: ir.Node) -> ir.Node:
    """A requirement under a condition that can fail, above what holds `below`; both count where it fails."""
    known = ir.Holds(BOOL, test, forgiving(test), clause)
    denied = ir.Call(BOOL, "!_(bool)", (known,))
    return ir.And(BOOL, (ir.Or(BOOL, (denied, value)), ir.Or(BOOL, (known, below))))


def concerned(test: ir.Node) -> ir.Node:
    """Whether a requirement under a condition that can fail takes part: it holds, or fails even when forgiven."""
    denied = ir.Call(BOOL, "!_(bool)", (forgiving(test),))
    return ir.Call(BOOL, "!_(bool)", (_or_false(denied),))
