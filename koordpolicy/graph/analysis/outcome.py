"""Whether a condition comes out the same on every input, as far as intervals and choices tell."""

from collections.abc import Sequence
from typing import Final

from koordpolicy.graph.analysis.region import boxes, boxes_without
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import rewrite
from koordpolicy.language.cel.types import STRING

_OPERATION: Final = "operation"


def outcome(condition: ir.Node, operations: Sequence[str] = ()) -> bool | None:
    """True where it holds on every input on which it can be told, False where on none, None where that is not known.

    `operations` are those of the requests that it is asked of, where they are known.
    """
    if not operations:
        return _outcome(condition)
    found = {_outcome(fold(_during(condition, one))) for one in operations}
    return found.pop() if len(found) == 1 else None


def _outcome(condition: ir.Node) -> bool | None:
    if not boxes(condition):
        return False
    return None if boxes_without(condition) else True


def _during(condition: ir.Node, operation: str) -> ir.Node:
    """The condition of requests of one operation."""

    def change(node: ir.Node) -> ir.Node:
        named = isinstance(node, ir.Var) and not node.local and node.name == _OPERATION
        return constant(STRING, operation, node.start, node.end) if named else node

    return rewrite(condition, change)
