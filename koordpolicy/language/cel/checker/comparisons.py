"""Comparisons: order, equality, membership."""

from koordpolicy.language.cel import ast, ir, units
from koordpolicy.language.cel.checker.bounds import warn_if_decided
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.checker.operands import (
    as_number,
    as_text,
    call,
    conversion,
    no_operator,
    settled,
    sign_of,
    taken,
)
from koordpolicy.language.cel.checker.quantities import clash, operand, take_unit, zero_as
from koordpolicy.language.cel.types import BOOL, DOUBLE, NULL, STRING, Type
from koordpolicy.language.cel.wording import open_type, short, spoken

_ORDERED = frozenset(
    (
        "bool", "int", "uint", "double", "string", "bytes",
        "google.protobuf.Timestamp", "google.protobuf.Duration",
    )
)  # fmt: skip


def check_relation(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> ir.Node:
    """`< <= > >=`: one ordered type, or numbers of any two types."""
    name = node.function
    left, right = settled(context, args)
    if left.unit is not None or right.unit is not None:
        matched = _matched(context, node, args)
        if not isinstance(matched, list):
            return matched
        args = matched
        left, right = context.type(args[0]), context.type(args[1])
    warn_if_decided(context, node, args)
    if open_type(left) or open_type(right):
        if all(open_type(side) or side.name in _ORDERED for side in (left, right)):
            return call(node, f"{name}(dyn,dyn)", BOOL, args)
    elif left.name in _ORDERED and (left.name == right.name or (left.is_number and right.is_number)):
        return call(node, f"{name}({left.name},{right.name})", BOOL, args)
    return no_operator(context, node, left, right, args)


def _matched(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> list[ir.Node] | ir.Node:
    """Two operands to compare, brought to one unit, or the error node of the report."""
    args = take_unit(context, args)
    left, right = context.type(args[0]), context.type(args[1])
    if not (left.is_number and right.is_number) or left.unit == right.unit:
        return args
    if units.comparable_as_share(left, right):
        return [arg if context.type(arg).unit is None else _as_share(arg) for arg in args]
    return clash(context, sign_of(node), operand(context, args[0]), operand(context, args[1]), node)


def _as_share(node: ir.Node) -> ir.Node:
    return ir.Call(DOUBLE, "ratio(percent)", (node,), start=node.start, end=node.end)


def check_equality(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> ir.Node:
    """`==` and `!=`: one type, unless a side is left to run time."""
    left, right = context.type(args[0]), context.type(args[1])
    if left.unit is not None or right.unit is not None:
        matched = _matched(context, node, args)
        if not isinstance(matched, list):
            return matched
        args = matched
        left, right = context.type(args[0]), context.type(args[1])
    if context.unifier.join(left, right) is None:
        if NULL in (left, right):
            return _never_null(context, node, args)
        verdict = "they are never equal"
        if left.is_number and right.is_number:
            verdict = f"`{sign_of(node)}` wants numbers of one type"
        return context.fail(
            "KP205",
            f"`{context.text(args[0])}` is {spoken(left)}, `{context.text(args[1])}` is {spoken(right)}: {verdict}",
            node.start, node.end, conversion(context, node.function, args),
        )  # fmt: skip
    warn_if_decided(context, node, args)
    return call(node, node.function, BOOL, args)


def _never_null(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> ir.Node:
    """Report a comparison with null: what is asked for is most likely whether something is there."""
    at = 1 if context.type(args[0]) == NULL else 0
    side = context.text(args[at])
    asked = _whether_there(context, node.args[at])
    if node.function == "_==_" and asked is not None:
        asked = f"!({asked})" if " in " in asked else f"!{asked}"
    return context.fail(
        "KP205",
        f"`{side}` is {spoken(context.type(args[at]))}, and never null",
        node.start, node.end,
        f"to ask whether it is there, write `{asked}`" if asked else "remove the comparison",
        replacement=asked,
    )  # fmt: skip


def _whether_there(context: Context, side: ast.Expr) -> str | None:
    """The test that what an expression reads is there, where it has such a test."""
    if isinstance(side, ast.SelectExpr) and not side.test and not side.optional:
        return f"has({context.text(side)})"
    if isinstance(side, ast.IndexExpr) and not side.optional:
        return f"{context.text(side.index)} in {context.text(side.operand)}"
    return None


def check_membership(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> ir.Node:
    """`in`: an element of a list or a key of a map."""
    element, container = context.type(args[0]), context.type(args[1])
    if open_type(container):
        return call(node, "@in(dyn,dyn)", BOOL, args)
    if container.name not in ("list", "map"):
        return context.fail(
            "KP205", f"`{context.text(args[1])}` is {spoken(container)}; `in` looks into lists and maps",
            args[1].start, args[1].end,
            "use `text.contains(part)` for a part of a string" if container == STRING else None,
        )  # fmt: skip
    inner = container.params[0]
    if inner.unit is not None and (taken := zero_as(args[0], inner)) is not None:
        args = [taken, args[1]]
    elif not context.unifier.fits((element,), (inner,)):
        if element.is_number and inner.is_number and element.unit is not inner.unit:
            among = units.Operand(inner, context.text(args[1]), args[1].start, args[1].end)
            return clash(context, "in", operand(context, args[0]), among, node)
        what = "elements" if container.name == "list" else "keys"
        return context.fail(
            "KP205",
            f"`{context.text(args[0])}` is {spoken(element)}, the {what} of `{context.text(args[1])}` are {short(inner)}",
            node.start, node.end, _as_element(context, args[0], element, inner),
        )  # fmt: skip
    return call(node, f"@in(dyn,{container.name})", BOOL, args)


def _as_element(context: Context, node: ir.Node, given: Type, inner: Type) -> str | None:
    """How a value becomes one that a list or a map may hold."""
    if given.name == "optional_type":
        return taken(context, node)
    if given == STRING and inner.is_number:
        return as_number(context, node, inner)
    return as_text(context, node) if inner == STRING else None
