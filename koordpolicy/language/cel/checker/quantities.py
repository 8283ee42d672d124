"""Quantities as operands: zeros that take a unit, and the report of numbers that do not go together."""

from dataclasses import replace

from koordpolicy.language.cel import ir, units
from koordpolicy.language.cel.checker.context import Context, Stretch
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.types import DOUBLE, Type


def take_unit(context: Context, args: list[ir.Node]) -> list[ir.Node]:
    """The operands with literal zeros given the unit of the others: `x > 0`, `max(x, 0)`."""
    quantity = next((found for arg in args if (found := context.type(arg)).unit is not None), None)
    if quantity is None:
        return args
    return [zero_as(arg, quantity) or arg for arg in args]


def zero_as(node: ir.Node, wanted: Type) -> ir.Node | None:
    """A literal zero as a quantity; also where each branch of a conditional is zero or such a quantity."""
    if node.type == wanted:
        return node
    if is_zero(node):
        return constant(wanted, 0.0 if wanted.name == "double" else 0, node.start, node.end)
    if isinstance(node, ir.Cond):
        then, otherwise = zero_as(node.then, wanted), zero_as(node.otherwise, wanted)
        if then is not None and otherwise is not None:
            return replace(node, type=wanted, then=then, otherwise=otherwise)
    return None


def is_zero(node: ir.Node, any_unit: bool = False) -> bool:
    """Whether a node is a literal zero; without `any_unit` one that can take a unit."""
    return (
        isinstance(node, ir.Const)
        and node.type.name in ("int", "uint", "double")
        and (any_unit or (node.type.unit is None and node.type.name != "uint"))
        and node.value == 0
    )


def as_double(node: ir.Node) -> ir.Node:
    """An int as a double."""
    if isinstance(node, ir.Const) and isinstance(node.value, int):
        return constant(DOUBLE, float(node.value), node.start, node.end)
    return ir.Call(DOUBLE, "double(int)", (node,), start=node.start, end=node.end)


def operand(context: Context, node: ir.Node) -> units.Operand:
    """An operand as messages speak of it."""
    value = node.value if isinstance(node, ir.Const) else None
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return units.Operand(context.type(node), context.text(node), node.start, node.end, number)


def clash(context: Context, sign: str, left: units.Operand, right: units.Operand, whole: Stretch) -> ir.Node:
    """Report two numbers that do not go together; at the bare one, if it is the lack of a unit."""
    code, message, help = units.clash(sign, left, right)
    if code != "KP213":
        return context.fail(code, message, whole.start, whole.end, help)
    bare, quantity = (left, right) if left.type.unit is None else (right, left)
    return context.fail(code, message, bare.start, bare.end, help, units.spelling(bare, quantity.type.unit))
