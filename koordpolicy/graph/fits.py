"""Whether an expression's type is what its place asks for."""

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.casts import cast, strangers
from koordpolicy.language.cel.types import DOUBLE, DYN, ERROR, INT, UINT, Type


def fitted(node: ir.Node, wanted: Type, also: tuple[Type, ...] = ()) -> ir.Node | None:
    """The expression as a value of `wanted` or one of `also`; None when it is something else.

    A whole number stands for a double; everything else must be exactly what is asked. What only run time can tell is
    checked there, against `wanted`.
    """
    if wanted == DYN or node.type in (ERROR, wanted, *also):
        return node
    if node.type == DYN or _emptied(node.type, wanted):
        return cast(node, wanted) if also or not strangers(node, wanted) else None
    if wanted == DOUBLE and node.type in (INT, UINT):
        return ir.Call(DOUBLE, f"double({node.type.name})", (node,), start=node.start, end=node.end)
    return None


def _emptied(actual: Type, wanted: Type) -> bool:
    """`[]`, `{}` and lists of dyn stand for a list or map of anything."""
    return (
        actual.name == wanted.name
        and len(actual.params) == len(wanted.params)
        and all(a in (DYN, w) or _emptied(a, w) for a, w in zip(actual.params, wanted.params, strict=True))
        and bool(actual.params)
    )
