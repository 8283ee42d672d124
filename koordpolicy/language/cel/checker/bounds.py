"""Comparisons whose outcome does not depend on any input (KP214)."""

from math import inf

from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker.context import Context

_SIZES = ("size(", ".size(")
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
    if node.type.name == "uint" or (isinstance(node, ir.Call) and node.overload.startswith(_SIZES)):
        return 0, inf
    return -inf, inf
