"""Calls with quantities among their arguments, where no overload speaks of their units."""

from collections.abc import Iterable, Sequence

from koordpolicy.language.cel import ast, ir, units
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.checker.overloads import OverloadMatch, is_generic, matches, spread
from koordpolicy.language.cel.checker.quantities import clash, operand, zero_as
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.types import Type, Unit
from koordpolicy.language.cel.wording import spoken, wished

Fitted = tuple[list[ir.Node], list[Type], list[OverloadMatch]]
"""Arguments, the types to match them with, and the overloads that take them."""


def fit_units(
    context: Context,
    node: ast.CallExpr,
    function: Function,
    overloads: Sequence[Overload],
    args: list[ir.Node],
) -> Fitted | ir.Node | None:
    """A second try after no overload took the arguments as they are.

    Literal zeros take the unit of the others. Then the functions named in `units` see plain numbers,
    and those that keep the unit give it to their result. None when units play no part; the error
    node of a report when they are what does not fit.
    """
    types = [context.type(arg) for arg in args]
    named = units.units_of(types) - {None}
    wanted = {
        unit for overload in overloads for param in overload.params for unit in units.units_in(param)
    } - {None}  # fmt: skip
    if not named and not wanted:
        return None
    if len(named) == 1:
        quantity = next(kind for each in types for kind in _numbers(each) if kind.unit is not None)
        args = [zero_as(arg, quantity) or arg for arg in args]
        types = [context.type(arg) for arg in args]
        found = matches(context.unifier, overloads, types)
        if found and function.name not in units.KEEPS_UNIT:
            return args, types, found
    plain = [units.without_units(each) for each in types]
    found = matches(context.unifier, overloads, plain)
    if not found:
        return _lacks_unit(context, function, overloads, args, types) if wanted else None
    if function.name in units.KEEPS_FIRST:
        if units.units_of(types[1:]) != {None}:
            return _unwanted(context, function, args[1:], types[1:])
        return args, plain, _with_units(found, named)
    if function.name == "string" and (advice := units.shown_by(context.text(args[0]), types[0])) is not None:
        return context.fail(
            "KP204", f"a text shows no unit, `{context.text(args[0])}` is {spoken(types[0])}",
            args[0].start, args[0].end, advice,
        )  # fmt: skip
    if function.name in units.DROPS_UNIT:
        return args, plain, found
    keeps = function.name in units.KEEPS_UNIT
    agree = keeps or any(is_generic(param) for each in found for param in each.overload.params)
    if agree and len(units.units_of(types)) > 1:
        return _mixed(context, node, function, args, types)
    if keeps:
        return args, plain, _with_units(found, named)
    return _unwanted(context, function, args, types)


def _with_units(found: Sequence[OverloadMatch], named: Iterable[Unit | None]) -> list[OverloadMatch]:
    return [
        OverloadMatch(each.overload, each.params, units.with_unit(each.result, unit))
        for each in found
        for unit in named
        if unit is not None
    ]


def _numbers(type: Type) -> list[Type]:
    """The types of numbers in a type: `cpu` of `list(cpu)`."""
    return [type] if type.is_number else [inner for each in type.params for inner in _numbers(each)]


def _mixed(
    context: Context, node: ast.CallExpr, function: Function, args: Sequence[ir.Node], types: Sequence[Type]
) -> ir.Node:
    """Arguments of different units where one is wanted."""
    numbers = [
        units.Operand(kind, context.text(arg), arg.start, arg.end, operand(context, arg).literal)
        for arg, given in zip(args, types, strict=True)
        for kind in _numbers(given)
    ]
    quantity = next(each for each in numbers if each.type.unit is not None)
    other = next(each for each in numbers if each.type.unit is not quantity.type.unit)
    left, right = sorted((quantity, other), key=lambda each: each.start)
    return clash(context, function.name, left, right, node)


def _unwanted(
    context: Context, function: Function, args: Sequence[ir.Node], types: Sequence[Type]
) -> ir.Node:
    """A quantity where a function takes plain values."""
    arg, given = next(
        (arg, given) for arg, given in zip(args, types, strict=True) if units.units_in(given) - {None}
    )
    text = context.text(arg)
    return context.fail(
        "KP204", f"`{function.name}` takes plain numbers, `{text}` is {spoken(given)}",
        arg.start, arg.end, f"`number({text})` drops the unit where that is meant",
    )  # fmt: skip


def _lacks_unit(
    context: Context, function: Function, overloads: Sequence[Overload], args: Sequence[ir.Node],
    types: Sequence[Type],
) -> ir.Node | None:  # fmt: skip
    """A parameter has a unit that its argument lacks, or has another of."""
    for overload in overloads:
        for arg, given, param in zip(args, types, spread(overload, len(args)), strict=True):
            if param.unit is None or not given.is_number or given.unit is param.unit:
                continue
            text = context.text(arg)
            if given.unit is None:
                code, now = "KP213", "a bare number"
                help: str | None = units.give_unit(operand(context, arg), param.unit)
            else:
                code, now, help = "KP204", spoken(given), None
            return context.fail(
                code, f"`{function.name}` takes {wished(param)}, `{text}` is {now}",
                arg.start, arg.end, help,
            )  # fmt: skip
    return None
