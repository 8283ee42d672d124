"""Calls of the functions that Library documents define: the body takes the place of the call."""

from koordpolicy.language.cel import ast, ir, units
from koordpolicy.language.cel.casts import cast
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.checker.names import error_at
from koordpolicy.language.cel.checker.quantities import operand, zero_as
from koordpolicy.language.cel.environment import UserFunction
from koordpolicy.language.cel.ir_change import placed, renamed_locals, size
from koordpolicy.language.cel.syntax import MAX_NODES
from koordpolicy.language.cel.types import ERROR, Type
from koordpolicy.language.cel.wording import short, spoken


def call_library(
    context: Context, node: ast.CallExpr, function: UserFunction, args: list[ir.Node]
) -> ir.Node:
    """The function's body with its parameters bound to the checked arguments."""
    if len(args) != len(function.params):
        declared = ", ".join(f"{name}: {short(kind)}" for name, kind in function.params)
        count = len(function.params)
        return context.fail(
            "KP205", f"`{function.name}` takes {count} argument{'' if count == 1 else 's'}, {len(args)} given",
            node.start, node.end, f"it is declared as `{function.name}({declared})`",
        )  # fmt: skip
    if function.result == ERROR:
        return error_at(node)
    bound: list[ir.Node] = []
    for arg, (name, kind) in zip(args, function.params, strict=True):
        fitted = _argument(context, function, name, kind, arg)
        if fitted.type == ERROR:
            return error_at(node)
        bound.append(fitted)
    context.expanded += size(function.body)
    if context.expanded > MAX_NODES:
        return context.fail(
            "KP211", f"`{function.name}` and the functions it calls grow too large here", node.start, node.end,
            "call the function once and bind its result to a variable",
        )  # fmt: skip
    suffix = context.local_name(node, "")
    body = renamed_locals(placed(function.body, node.start, node.end), lambda name: name + suffix)
    for value, (name, _) in reversed(list(zip(bound, function.params, strict=True))):
        body = ir.Bind(body.type, name + suffix, value, body, start=node.start, end=node.end)
    return body


def _argument(context: Context, function: UserFunction, name: str, kind: Type, arg: ir.Node) -> ir.Node:
    """The argument as the parameter wants it, or the error node of the report."""
    if kind.unit is not None and (zero := zero_as(arg, kind)) is not None:
        return zero
    given = context.type(arg)
    if context.unifier.fits((given,), (kind,)):
        return arg if given == kind else cast(arg, kind)
    code, help = "KP205", None
    if given.is_number and kind.is_number and given.unit is not kind.unit:
        code = "KP204"
        if given.unit is None and kind.unit is not None:
            code, help = "KP213", units.give_unit(operand(context, arg), kind.unit)
    return context.fail(
        code, f"`{name}` of `{function.name}` is {spoken(kind)}, `{context.text(arg)}` is {spoken(given)}",
        arg.start, arg.end, help,
    )  # fmt: skip
