"""Comparisons whose outcome does not depend on any input (KP214)."""

from collections.abc import Mapping
from math import inf
from types import MappingProxyType

from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker.context import Context

_SIZES = ("size(", ".size(")
_OF_TIME = "(google.protobuf.Timestamp"
TIMES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "getMonth": (0, 11),
        "getDate": (1, 31),
        "getDayOfMonth": (0, 30),
        "getDayOfWeek": (0, 6),
        "getDayOfYear": (0, 365),
        "getHours": (0, 23),
        "getMinutes": (0, 59),
        "getSeconds": (0, 59),
        "getMilliseconds": (0, 999),
    }
)
"""What parts of a time lie within."""
_REFLEXIVE = frozenset(("_<=_", "_>=_", "_==_"))


def warn_if_decided(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> None:
    """Report a comparison that is always true or always false.

    It stays valid all the same: a rule that says nothing is worth a warning, not an error.
    """
    if not context.environment.literal_checks:
        return
    outcome = _outcome(node.function, *args)
    if outcome is not None:
        context.warn(
            "KP214",
            f"`{context.text(node)}` is always {'true' if outcome else 'false'}",
            node.start,
            node.end,
        )


def _outcome(operator: str, left: ir.Node, right: ir.Node) -> bool | None:
    """The outcome where it is certain; None where it depends."""
    if isinstance(left, ir.Field | ir.Var | ir.Ref) and left == right and left.type.name != "double":
        return operator in _REFLEXIVE  # a double may be NaN, which equals nothing
    if not (left.type.is_number and right.type.is_number):
        return None
    low, high = _bounds(left)
    least, greatest = _bounds(right)
    below, above = high < least, low > greatest
    match operator:
        case "_==_" | "_!=_":
            return operator == "_!=_" if below or above else None
        case "_<_":
            return True if below else False if low >= greatest else None
        case "_<=_":
            return True if high <= least else False if above else None
        case "_>_":
            return True if above else False if high <= least else None
        case "_>=_":
            return True if low >= greatest else False if below else None
    return None


def _bounds(node: ir.Node) -> tuple[float, float]:
    """The least and the greatest value that a number can have."""
    if isinstance(node, ir.Const) and isinstance(node.value, int | float):
        return node.value, node.value
    if isinstance(node, ir.Call) and _OF_TIME in node.overload:
        return TIMES.get(node.overload.partition("(")[0], (-inf, inf))
    if node.type.name == "uint" or (isinstance(node, ir.Call) and node.overload.startswith(_SIZES)):
        return 0, inf
    return -inf, inf
