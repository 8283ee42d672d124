"""Making and refusing the calls that operators become."""

import re

from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.checker.overloads import matches
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.library.quantities import parse_quantity
from koordpolicy.language.cel.types import DURATION, INT, STRING, TIMESTAMP, Type, Unit
from koordpolicy.language.cel.wording import open_type, spoken, written_empty

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
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
    return context.fail("KP205", message, node.start, node.end, conversion(context, node.function, args))


def conversion(context: Context, operator: str, args: list[ir.Node]) -> str | None:
    """How two operands of different types might be brought together."""
    left, right = context.type(args[0]), context.type(args[1])
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
        if other.name == "optional_type" and one.name != "optional_type":
            return taken(context, node)
        if one == TIMESTAMP and other == STRING:
            return f"convert it: `timestamp({_with_time(node, text)})`"
        if one == DURATION and other == STRING:
            return f"convert it: `duration({text})`"
        if one == DURATION and other.is_number:
            return f"write a duration: `duration('{text}s')`" if isinstance(node, ir.Const) else None
    if STRING not in (left, right) or left == right:
        return None
    written, counted = (args[0], args[1]) if left == STRING else (args[1], args[0])
    if context.type(counted).is_number and operator != "_+_":
        return as_number(context, written, context.type(counted))
    return as_text(context, counted)


def taken(context: Context, optional: ir.Node) -> str:
    """How the value of an optional is taken, an empty one where there is none."""
    (inner,) = context.type(optional).params
    return f"take its value: `{context.text(optional)}.orValue({written_empty(inner) or '..'})`"


def _with_time(node: ir.Node, text: str) -> str:
    """A text that is a time; where it is a mere date, midnight of that day."""
    if isinstance(node, ir.Const) and isinstance(node.value, str) and _DATE.fullmatch(node.value):
        return f"'{node.value}T00:00:00Z'"
    return text


def as_text(context: Context, node: ir.Node) -> str | None:
    """How a value becomes a text, with what the text then counts; None for what has no text of its own."""
    text, unit = context.text(node), context.type(node).unit
    if unit is Unit.PERCENT:
        return f"write it as a text: `percentText({text})`"
    if unit in (Unit.CPU, Unit.BYTES):
        return f"write it as a text: `quantityText({text})`"
    function = context.environment.function("string")
    if function is None or not matches(context.unifier, function.overloads, [context.type(node)]):
        return None
    counted = _COUNTED.get(unit) if unit is not None else None
    return f"convert it: `string({text})`" + (f", which gives {counted}" if counted else "")


_COUNTED = {Unit.BANDWIDTH: "bits per second"}


def as_number(context: Context, node: ir.Node, wanted: Type) -> str | None:
    """How a text becomes a number of a type, so that the numbers are compared: texts have another order."""
    text, unit = context.text(node), wanted.unit
    written = node.value.strip() if isinstance(node, ir.Const) and isinstance(node.value, str) else None
    reader = {Unit.CPU: "cpu", Unit.BYTES: "memory", Unit.BANDWIDTH: "bandwidth"}.get(unit) if unit else None
    if reader is not None:
        return f"write the quantity: `{reader}({text})`" if written is None or _is_quantity(written) else None
    if written is None:
        number = f"{wanted.name}({text})"
        return f"read the number from the text: `{f'{unit}({number})' if unit else number}`"
    plain = written.removesuffix("%") if unit is Unit.PERCENT else written
    if not _NUMBER.fullmatch(plain) or (wanted.name != "double" and "." in plain):
        return None
    if unit is not None:
        return f"write `{'percent' if unit is Unit.PERCENT else 'amount'}({plain})`"
    return f"write the number: `{plain}{'.0' if wanted.name == 'double' and '.' not in plain else ''}`"


_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,9})?")


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except CelError:
        return False
    return True


def sign_of(node: ast.CallExpr) -> str:
    """The operator as it is written."""
    return "in" if node.function == "@in" else node.function[1:-1]
