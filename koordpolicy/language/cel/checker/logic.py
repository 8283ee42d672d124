"""Logic: conditions, `&&`, `||` and the conditional."""

from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.checker.names import error_at
from koordpolicy.language.cel.checker.operands import conversion
from koordpolicy.language.cel.checker.quantities import clash, operand, take_unit
from koordpolicy.language.cel.checker.settled import warn_if_settled
from koordpolicy.language.cel.types import BOOL, DYN
from koordpolicy.language.cel.wording import open_type, spoken


def condition(context: Context, node: ir.Node) -> bool:
    """Whether a node can be a condition; reported when it cannot."""
    given = context.type(node)
    if given.name == "bool" or open_type(given):
        return True
    if given.is_number:
        help: str | None = f"compare it: `{context.text(node)} != 0`"
    elif given.name in ("string", "list", "map", "bytes"):
        help = f"ask for its size: `size({context.text(node)}) > 0`"
    elif given.name == "optional_type":
        help = f"ask whether it has a value: `{context.text(node)}.hasValue()`"
    else:
        help = None
    context.fail(
        "KP205", f"`{context.text(node)}` is {spoken(given)}, a condition is true or false",
        node.start, node.end, help,
    )  # fmt: skip
    return False


def check_logic(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> ir.Node:
    """`&&` and `||` over all terms of a chain."""
    conditions = [condition(context, arg) for arg in args]  # each is reported, not only the first
    if not all(conditions):
        return error_at(node)
    make = ir.And if node.function == "_&&_" else ir.Or
    found = make(BOOL, tuple(args), start=node.start, end=node.end)
    warn_if_settled(context, found)
    return found


def check_conditional(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> ir.Node:
    """`c ? a : b`, both branches of one type."""
    test, then, otherwise = args
    if not condition(context, test):
        return error_at(node)
    if context.environment.unchecked:
        return ir.Cond(DYN, test, then, otherwise, start=node.start, end=node.end)
    then, otherwise = take_unit(context, [then, otherwise])
    left, right = context.type(then), context.type(otherwise)
    joined = context.unifier.join(left, right)
    if joined is None:
        if left.is_number and right.is_number and left.unit != right.unit:
            return clash(context, ":", operand(context, then), operand(context, otherwise), node)
        return context.fail(
            "KP205",
            f"`{context.text(then)}` is {spoken(left)}, `{context.text(otherwise)}` is {spoken(right)}: "
            "both branches must give one type",
            node.start, node.end, conversion(context, node.function, [then, otherwise]) or "give both one type",
        )  # fmt: skip
    return ir.Cond(joined, test, then, otherwise, start=node.start, end=node.end)
