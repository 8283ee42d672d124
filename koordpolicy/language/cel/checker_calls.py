"""Calls of named functions: overloads, run-time dispatch, Library functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.cel import ast, ir, units
from koordpolicy.language.cel.checker_context import (
    Context,
    constant,
    qualified_name,
    root_of,
)
from koordpolicy.language.cel.checker_literals import check_literals
from koordpolicy.language.cel.checker_names import Group, Space, as_value, error_at, place
from koordpolicy.language.cel.checker_operators import operand, take_unit, zero_as
from koordpolicy.language.cel.environment import UserFunction
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.syntax import MAX_NODES
from koordpolicy.language.cel.types import DYN, ERROR, STRING, Type
from koordpolicy.language.cel.walk import nodes, renamed_locals
from koordpolicy.language.cel.wording import spoken

_MIXES_NUMBERS = frozenset(("math.greatest", "math.least"))
"""Functions that take numbers of different types in one call."""


def check_call(context: Context, node: ast.Call) -> ir.Node:
    """A call that is neither an operator nor a macro."""
    if node.target is None:
        return _global_call(context, node, node.function)
    prefix = qualified_name(node.target)
    root = root_of(node.target)
    local = isinstance(root, ast.Ident) and not root.absolute and root.name in context.scope
    if prefix is not None and not local:
        name = f"{prefix}.{node.function}"
        if isinstance(root, ast.Ident) and root.absolute:
            name = "." + name
        if context.environment.function(name) is not None or name in context.environment.user_functions:
            return _global_call(context, node, name)
    return _method_call(context, node, node.target)


def _global_call(context: Context, node: ast.Call, name: str) -> ir.Node:
    args = _arguments(context, node)
    if args is None:
        return error_at(node)
    own = context.environment.user_functions.get(name)
    if own is not None:
        return _library_call(context, node, own, args)
    function = context.environment.function(name)
    if function is None:
        return _unknown_function(context, node, name, receiver=False)
    return _resolve(context, node, function, args, receiver=False)


def _method_call(context: Context, node: ast.Call, target: ast.Node) -> ir.Node:
    where = place(context, target)
    name = node.function
    if isinstance(where, Group):
        # Facts that need an argument are functions on the record: `node.load.estimated(pod)`.
        full = f"{where.path}.{name}"
        function = context.environment.function(full)
        if function is None or where.optional:
            return as_value(context, where)
        receiver = where.base
    else:
        receiver = as_value(context, where)
        function = context.environment.function(name)
    args = _arguments(context, node)
    if receiver.type == ERROR or args is None:
        return error_at(node)
    if function is None:
        if isinstance(where, Space):
            return receiver
        return _unknown_function(context, node, name, receiver=True)
    return _resolve(context, node, function, [receiver, *args], receiver=True)


def _arguments(context: Context, node: ast.Call) -> list[ir.Node] | None:
    """The checked arguments; None when one of them was reported."""
    dynamic = node.function == "dyn" and node.target is None
    args = [_dynamic(context, arg) if dynamic else context.visit(arg) for arg in node.args]
    return None if any(arg.type == ERROR for arg in args) else args


def _dynamic(context: Context, arg: ast.Node) -> ir.Node:
    """The argument of `dyn()`: a literal in it may mix types, because that is what it is asked for."""
    if not context.environment.homogeneous_literals or not isinstance(arg, ast.ListLiteral | ast.MapLiteral):
        return context.visit(arg)
    context.mixed_literals += 1
    found = context.visit(arg)
    context.mixed_literals -= 1
    return found


def _unknown_function(context: Context, node: ast.Call, name: str, receiver: bool) -> ir.Node:
    shown = name.removeprefix(".")
    if context.environment.unchecked:
        return ir.Call(DYN, "error(unbound)", (constant(STRING, shown),), start=node.start, end=node.end)
    functions = context.environment.functions
    known = [
        each for each, function in functions.items()
        if any(overload.receiver == receiver for overload in function.overloads)
    ]  # fmt: skip
    close = nearest(shown, [*known, *(() if receiver else context.environment.user_functions)])
    help = f"did you mean `{close}`?" if close else None
    start = node.name_start
    if node.target is not None and not receiver:
        start = node.start
    what = "method" if receiver else "function"
    return context.fail(
        "KP207", f"unknown {what} `{shown}`", start, node.name_start + len(node.function), help
    )


# --- overloads --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Match:
    overload: Overload
    params: tuple[Type, ...]
    result: Type


def _resolve(
    context: Context, node: ast.Call, function: Function, args: list[ir.Node], receiver: bool
) -> ir.Node:
    overloads = [
        overload for overload in function.overloads
        if overload.receiver == receiver and _takes(overload, len(args))
    ]  # fmt: skip
    if not overloads:
        return _wrong_count(context, node, function, len(args), receiver)
    if context.environment.unchecked:
        return _dispatch(node, function, args, receiver, DYN)
    types = [context.type(arg) for arg in args]
    matches = _matches(context, overloads, types)
    if not matches:
        fitted = _with_units(context, node, function, overloads, args)
        if isinstance(fitted, ir.Node):
            return fitted
        if fitted is not None:
            args, types, matches = fitted
    if not matches:
        if function.name in _MIXES_NUMBERS and all(each.is_number or each.name == "dyn" for each in types):
            return _dispatch(node, function, args, receiver, DYN)
        return _no_overload(context, node, function, types, overloads, receiver)
    chosen = _choose(context, matches, types)
    if chosen is None or (function.name in _MIXES_NUMBERS and DYN in types):
        results = {context.unifier.final(match.result) for match in matches}
        only = results.pop() if len(results) == 1 and function.name not in _MIXES_NUMBERS else DYN
        return _dispatch(node, function, args, receiver, only)
    result = context.unifier.resolved(chosen.result)
    if any(
        _loose(given, wanted)
        for given, wanted in zip(types, _spread(chosen.overload, len(args)), strict=True)
    ):
        return _dispatch(node, function, args, receiver, result)
    call = ir.Call(result, chosen.overload.id, tuple(args), start=node.start, end=node.end)
    return check_literals(context, call, function, chosen.overload)


def _takes(overload: Overload, count: int) -> bool:
    return count == len(overload.params) or (overload.variadic and count > len(overload.params))


def _spread(overload: Overload, count: int) -> tuple[Type, ...]:
    """The parameters for so many arguments: the last of a variadic overload repeats."""
    missing = count - len(overload.params)
    return overload.params + overload.params[-1:] * missing if missing > 0 else overload.params


def _generic(type: Type) -> bool:
    return type.name == "param" or any(map(_generic, type.params))


def _matches(context: Context, overloads: Sequence[Overload], types: Sequence[Type]) -> list[_Match]:
    found: list[_Match] = []
    for overload in overloads:
        params: tuple[Type, ...] = _spread(overload, len(types))
        result = overload.result
        if any(map(_generic, (*params, result))):
            *fresh, result = context.unifier.instance((*params, result))
            params = tuple(fresh)
        if context.unifier.fits(types, params):
            found.append(_Match(overload, params, result))
    return found


def _choose(context: Context, matches: list[_Match], types: Sequence[Type]) -> _Match | None:
    """The one overload that is meant; None when only run time can tell."""
    if len(matches) == 1:
        return matches[0]
    for match in matches:
        if all(context.unifier.resolved(one) == two for one, two in zip(match.params, types, strict=True)):
            return match
    return None


def _loose(given: Type, wanted: Type) -> bool:
    """Whether a value of the given type may turn out not to be what the parameter wants."""
    if wanted.name in ("dyn", "param"):
        return False
    if given.name in ("dyn", "param") or given.name != wanted.name:
        return True
    return any(map(_loose, given.params, wanted.params))


def _dispatch(
    node: ast.Call, function: Function, args: Sequence[ir.Node], receiver: bool, result: Type
) -> ir.Node:
    """A call whose overload is found by the values of the arguments."""
    name = f"{'.' if receiver else ''}{function.name}({','.join(['dyn'] * len(args))})"
    return ir.Call(result, name, tuple(args), start=node.start, end=node.end)


def _wrong_count(context: Context, node: ast.Call, function: Function, count: int, receiver: bool) -> ir.Node:
    given = count - receiver
    if context.environment.unchecked:
        message = constant(STRING, f"{function.name} does not take {given} arguments")
        return ir.Call(DYN, "error(no_such_overload)", (message,), start=node.start, end=node.end)
    same_style = sorted(
        {len(each.params) - receiver for each in function.overloads if each.receiver == receiver}
    )
    if not same_style:
        style = "x.{0}(..)" if not receiver else "{0}(x, ..)"
        return context.fail(
            "KP205", f"`{function.name}` is {'a function' if receiver else 'a method'}",
            node.name_start, node.name_start + len(node.function),
            f"write `{style.format(function.name)}`",
        )  # fmt: skip
    wanted = " or ".join(map(str, same_style))
    plural = "" if wanted == "1" else "s"
    return context.fail(
        "KP205", f"`{function.name}` takes {wanted} argument{plural}, {given} given", node.start, node.end,
        f"for example `{function.example}`" if function.example else None,
    )  # fmt: skip


def _no_overload(
    context: Context, node: ast.Call, function: Function, types: Sequence[Type],
    overloads: Sequence[Overload], receiver: bool,
) -> ir.Node:  # fmt: skip
    shown = ", ".join(str(context.unifier.final(each)) for each in types[receiver:])
    on = f" on {spoken(types[0])}" if receiver else ""
    message = f"`{function.name}` does not take ({shown}){on}"
    taken = sorted(
        {", ".join(map(str, each.params[receiver:])) for each in overloads if len(each.params) > receiver}
    )
    owners = sorted({str(each.params[0]) for each in overloads}) if receiver else []
    help = None
    if receiver and str(types[0]) not in owners:
        help = f"`{function.name}` belongs to {', '.join(owners)}"
    elif taken:
        help = f"it takes ({') or ('.join(taken[:6])})"
    return context.fail("KP205", message, node.start, node.end, help)


# --- units ------------------------------------------------------------------------------------------

_Fitted = tuple[list[ir.Node], list[Type], list[_Match]]


def _with_units(
    context: Context, node: ast.Call, function: Function, overloads: Sequence[Overload], args: list[ir.Node]
) -> _Fitted | ir.Node | None:
    """A second try for arguments of which some carry units.

    Literal zeros take the unit; then the functions of `units` see plain numbers, and those that keep
    the unit give it to their result. None when no unit plays a part; the error node of a report when
    units are what does not fit.
    """
    types = [context.type(arg) for arg in args]
    found = units.units_of(types)
    named = found - {None}
    wanted = {
        unit for overload in overloads for param in overload.params for unit in units.units_in(param)
    } - {None}  # fmt: skip
    if not named and not wanted:
        return None
    if len(named) == 1:
        (unit,) = named
        quantity = next(kind for each in types for kind in _numbers(each) if kind.unit is unit)
        filled = [zero_as(arg, quantity) or arg for arg in args]
        kinds = [context.type(arg) for arg in filled]
        matches = _matches(context, overloads, kinds)
        if matches:
            return filled, kinds, matches
        args, types = filled, kinds
    plain = [units.without_units(each) for each in types]
    matches = _matches(context, overloads, plain)
    if not matches:
        return _lacks_unit(context, node, function, overloads, args, types) if wanted else None
    if function.name in units.DROPS_UNIT:
        return args, plain, matches
    if function.name in units.KEEPS_UNIT:
        carried = units.units_of(types)
        if len(carried) > 1:
            return _mixed(context, node, function, args, types)
        (unit,) = carried
        assert unit is not None
        kept = [_Match(m.overload, m.params, units.with_unit(m.result, unit)) for m in matches]
        return args, plain, kept
    return _unwanted(context, node, function, args, types)


def _numbers(type: Type) -> list[Type]:
    return [type] if type.is_number else [inner for each in type.params for inner in _numbers(each)]


def _mixed(
    context: Context, node: ast.Call, function: Function, args: Sequence[ir.Node], types: Sequence[Type]
) -> ir.Node:
    """Arguments of different units where one is wanted."""
    first = next((i for i, each in enumerate(types) if each.unit is not None), 0)
    other = next((i for i, each in enumerate(types) if each.unit is not types[first].unit), None)
    if other is None or not types[other].is_number:
        return context.fail(
            "KP204", f"the arguments of `{function.name}` differ in unit", node.start, node.end
        )
    left, right = sorted((first, other))
    code, message, help = units.clash(
        function.name, operand(context, args[left]), operand(context, args[right])
    )
    return context.fail(code, message, node.start, node.end, help)


def _unwanted(
    context: Context, node: ast.Call, function: Function, args: Sequence[ir.Node], types: Sequence[Type]
) -> ir.Node:
    """A quantity where a function takes plain values."""
    if len(units.units_of(types)) > 1:
        return _mixed(context, node, function, args, types)
    at = next(i for i, each in enumerate(types) if units.units_in(each) - {None})
    text = context.text(args[at])
    return context.fail(
        "KP204", f"`{function.name}` takes plain numbers, `{text}` is {spoken(types[at])}",
        args[at].start, args[at].end, f"`number({text})` drops the unit where that is meant",
    )  # fmt: skip


def _lacks_unit(
    context: Context, node: ast.Call, function: Function, overloads: Sequence[Overload],
    args: Sequence[ir.Node], types: Sequence[Type],
) -> ir.Node | None:  # fmt: skip
    """A parameter has a unit that its argument lacks, or has another of."""
    for overload in overloads:
        for arg, given, param in zip(args, types, _spread(overload, len(args)), strict=True):
            if param.unit is None or not given.is_number or given.unit is param.unit:
                continue
            text = context.text(arg)
            code = "KP213" if given.unit is None else "KP204"
            is_now = "a bare number" if given.unit is None else spoken(given)
            help = units.give_unit(operand(context, arg), param.unit) if given.unit is None else None
            message = f"`{function.name}` takes a value that is {spoken(param)}, `{text}` is {is_now}"
            return context.fail(code, message, arg.start, arg.end, help)
    return None


# --- functions of Library documents -----------------------------------------------------------------


def _library_call(context: Context, node: ast.Call, function: UserFunction, args: list[ir.Node]) -> ir.Node:
    """The function's body in place of the call, its parameters bound to the arguments."""
    if len(args) != len(function.params):
        wanted = ", ".join(f"{name}: {kind}" for name, kind in function.params)
        return context.fail(
            "KP205", f"`{function.name}` takes {len(function.params)} arguments, {len(args)} given",
            node.start, node.end, f"it is declared as `{function.name}({wanted})`",
        )  # fmt: skip
    if function.result == ERROR:
        return error_at(node)
    bound: list[ir.Node] = []
    for arg, (name, kind) in zip(args, function.params, strict=True):
        (fitted, _) = take_unit(context, [arg, ir.Var(kind, name)])
        given = context.type(fitted)
        if not context.unifier.fits((given,), (kind,)):
            code = "KP204" if given.is_number and kind.is_number and given.unit != kind.unit else "KP205"
            help = None
            if code == "KP204" and given.unit is None and kind.unit is not None:
                code, help = "KP213", units.give_unit(operand(context, arg), kind.unit)
            return context.fail(
                code, f"`{name}` of `{function.name}` is {spoken(kind)}, `{context.text(arg)}` is {spoken(given)}",
                arg.start, arg.end, help,
            )  # fmt: skip
        bound.append(fitted)
    context.expanded += sum(1 for _ in nodes(function.body))
    if context.expanded > MAX_NODES:
        return context.fail(
            "KP211", f"`{function.name}` and the functions it calls grow too large here", node.start, node.end,
            "call the function once and bind its result to a variable",
        )  # fmt: skip
    suffix = context.local_name(node, "")
    body = renamed_locals(function.body, lambda name: name + suffix)
    for value, (name, _) in reversed(list(zip(bound, function.params, strict=True))):
        body = ir.Bind(body.type, name + suffix, value, body, start=node.start, end=node.end)
    return body
