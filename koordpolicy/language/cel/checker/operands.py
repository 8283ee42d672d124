"""Making and refusing the calls that operators become."""

from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.types import DURATION, INT, STRING, TIMESTAMP, Type
from koordpolicy.language.cel.wording import open_type, spoken

_VERBS = {"_+_": "added", "_-_": "subtracted", "_*_": "multiplied", "_/_": "divided", "_%_": "divided"}


def call(node: ast.Expr, overload: str, result: Type, args: list[ir.Node]) -> ir.Node:
    """The typed call that stands for an operator."""
    return ir.Call(result, overload, tuple(args), start=node.start, end=node.end)


def settled(context: Context, args: list[ir.Node]) -> tuple[Type, Type]:
    """The types of two operands; the element of an empty list takes the type of the other side."""
    left, right = context.type(args[0]), context.type(args[1])
    if left.name == "param" and not open_type(right):
        context.unifier.fits((left,), (right,))
        return right, right
    if right.name == "param" and not open_type(left):
        context.unifier.fits((right,), (left,))
        return left, left
    return left, right


def no_operator(
    context: Context, node: ast.CallExpr, left: Type, right: Type, args: list[ir.Node]
) -> ir.Node:
    """Report operands that no overload of the operator takes."""
    verb = _VERBS.get(node.function, "compared")
    if left == right:
        message = f"`{context.text(args[0])}` and `{context.text(args[1])}` are {spoken(left)} each, they cannot be {verb}"
    else:
        message = (
            f"`{context.text(args[0])}` is {spoken(left)}, `{context.text(args[1])}` is {spoken(right)}: "
            f"they cannot be {verb}"
        )
    return context.fail("KP205", message, node.start, node.end, _conversion(context, left, right, args))


def _conversion(context: Context, left: Type, right: Type, args: list[ir.Node]) -> str | None:
    """How two operands of different types might be brought together."""
    if left.is_number and right.is_number:
        target = "double" if "double" in (left.name, right.name) else "int"
        narrow = args[0] if left.name != target else args[1]
        text = context.text(narrow)
        whole = isinstance(narrow, ir.Const) and narrow.type == INT
        return (
            f"write `{text}` as `{text}.0`"
            if whole and target == "double"
            else f"convert it: `{target}({text})`"
        )
    for one, other, node in ((left, right, args[1]), (right, left, args[0])):
        text = context.text(node)
        if other.name == "optional_type":
            return f"take its value: `{text}.orValue(..)`"
        if one == TIMESTAMP and other == STRING:
            return f"convert it: `timestamp({text})`"
        if one == DURATION and other == STRING:
            return f"convert it: `duration({text})`"
        if one == DURATION and other.is_number:
            return f"write a duration: `duration('{text}s')`" if isinstance(node, ir.Const) else None
    for one, node in ((left, args[1]), (right, args[0])):
        if one == STRING and left != right:
            return f"convert it: `string({context.text(node)})`"
    return None


def sign_of(node: ast.CallExpr) -> str:
    """The operator as it is written."""
    return "in" if node.function == "@in" else node.function[1:-1]
