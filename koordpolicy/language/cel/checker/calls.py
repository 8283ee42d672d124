"""Calls of named functions: which one is meant, and which of its overloads."""

from collections.abc import Sequence

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.ast import qualified_name, root_of
from koordpolicy.language.cel.checker.call_units import fit_units
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.checker.library import call_library
from koordpolicy.language.cel.checker.literals import check_literals
from koordpolicy.language.cel.checker.macros import macro_usage
from koordpolicy.language.cel.checker.names import FactGroup, NameSpace, as_value, error_at, place
from koordpolicy.language.cel.checker.operands import as_number
from koordpolicy.language.cel.checker.overloads import choose, loose, matches, spread, takers
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.habits import called_elsewhere
from koordpolicy.language.cel.types import DYN, ERROR, INT, STRING, Type, list_of
from koordpolicy.language.cel.units import KEEPS_FIRST, KEEPS_UNIT, units_of
from koordpolicy.language.cel.wording import short, spoken

_MIXES_NUMBERS = frozenset(("math.greatest", "math.least"))
"""Functions that take numbers of different types in one call."""

_OPEN_LIST = list_of(DYN)

_OR_ELSE = {"or": False, "orValue": True}
"""Methods that evaluate their argument only where it is needed: whether they give the value itself."""


def check_call(context: Context, node: ast.CallExpr) -> ir.Node:
    """A call that is neither an operator nor a macro."""
    if node.target is None:
        return _global_call(context, node, node.function)
    prefix = qualified_name(node.target)
    root = root_of(node.target)
    if prefix is not None and isinstance(root, ast.Ident):
        name = f".{prefix}.{node.function}" if root.absolute else f"{prefix}.{node.function}"
        # A function goes before a variable of a macro that is called as its namespace: `x.map(math, math.abs(math))`.
        hidden = root.name in context.scope and not root.absolute
        if _known(context, name) or (not hidden and _is_namespace(context, root.name)):
            return _global_call(context, node, name)
    return _method_call(context, node, node.target)


def _known(context: Context, name: str) -> bool:
    environment = context.environment
    return environment.function(name) is not None or name in environment.user_functions


def _is_namespace(context: Context, name: str) -> bool:
    """Whether a name can only be the first part of a function's: `math` of `math.abs`."""
    environment = context.environment
    if (
        environment.unchecked
        or name in environment.variables
        or name in environment.refs
        or environment.container
    ):
        return False
    prefix = name + "."
    return name == "cel" or any(function.startswith(prefix) for function in environment.functions)


def _global_call(context: Context, node: ast.CallExpr, name: str) -> ir.Node:
    own = context.environment.user_functions.get(name)
    function = context.environment.function(name)
    if own is None and function is None:
        if _usage(name) is None:  # the arguments of a misspelt macro mean nothing yet
            _arguments(context, node, None, False)
        return _unknown_function(context, node, name)
    args = _arguments(context, node, None if own is not None else function, False)
    if args is None:
        return error_at(node)
    if own is not None:
        return call_library(context, node, own, args)
    assert function is not None
    return _resolve(context, node, function, args, receiver=False)


def _method_call(context: Context, node: ast.CallExpr, target: ast.Expr) -> ir.Node:
    where = place(context, target)
    if isinstance(where, NameSpace):
        return as_value(context, where)
    if isinstance(where, FactGroup):
        # Facts that need an argument are functions on the record: `node.load.estimated(pod)`.
        function = context.environment.function(f"{where.path}.{node.function}")
        if function is None or where.optional:
            return as_value(context, where)
        receiver = where.base
    else:
        receiver = where
        function = context.environment.function(node.function)
    if function is None and (context.environment.unchecked or receiver.type != ERROR):
        return _unknown_method(context, node, node.function)
    args = _arguments(context, node, function, True)
    if receiver.type == ERROR or function is None:
        return error_at(node)
    return (
        error_at(node)
        if args is None
        else _resolve(context, node, function, [receiver, *args], receiver=True)
    )


def _arguments(
    context: Context, node: ast.CallExpr, function: Function | None, receiver: bool
) -> list[ir.Node] | None:
    """The checked arguments; None when one of them was reported."""
    takes_any = _takes_any(function, receiver) if context.environment.homogeneous_literals else frozenset()
    args = [
        _mixed_literal(context, arg) if at in takes_any else context.visit(arg)
        for at, arg in enumerate(node.args)
    ]
    return None if any(arg.type == ERROR for arg in args) else args


def _takes_any(function: Function | None, receiver: bool) -> frozenset[int]:
    """The arguments in which a literal may mix types: that of `dyn()`, the list of `format()`."""
    if function is None:
        return frozenset()
    if function.name == "dyn":
        return frozenset((0,))
    return frozenset(
        at - receiver
        for overload in function.overloads
        if overload.receiver == receiver
        for at, param in enumerate(overload.params)
        if param == _OPEN_LIST
    )


def _mixed_literal(context: Context, arg: ast.Expr) -> ir.Node:
    if not isinstance(arg, ast.ListLiteral | ast.MapLiteral):
        return context.visit(arg)
    context.mixed_literals += 1
    found = context.visit(arg)
    context.mixed_literals -= 1
    return found


def _resolve(
    context: Context, node: ast.CallExpr, function: Function, args: list[ir.Node], receiver: bool
) -> ir.Node:
    overloads = takers(function, len(args), receiver)
    if not overloads:
        return _wrong_count(context, node, function, args, receiver)
    if context.environment.unchecked:
        return _call(node, function, None, args, receiver, DYN)
    unifier = context.unifier
    types = [context.type(arg) for arg in args]
    # A function that keeps units must see them even where it would take a list of anything.
    keeps = function.name in KEEPS_UNIT | KEEPS_FIRST and not units_of(types) <= {None}
    found = [] if keeps else matches(unifier, overloads, types)
    mixes = function.name in _MIXES_NUMBERS
    if not found:
        fitted = fit_units(context, node, function, overloads, args)
        if isinstance(fitted, ir.Node):
            return fitted
        if fitted is not None:
            args, types, found = fitted
        elif mixes and all(each.is_number or each == DYN for each in types):
            return _call(node, function, None, args, receiver, DYN)
        else:
            return _no_overload(context, node, function, args, overloads, receiver)
    if mixes and any(each == DYN for each in types):
        return _call(node, function, None, args, receiver, DYN)
    chosen = choose(unifier, found, types)
    if chosen is None:
        results = {unifier.resolved(match.result) for match in found}
        return _call(node, function, None, args, receiver, results.pop() if len(results) == 1 else DYN)
    result = unifier.resolved(chosen.result)
    if any(map(loose, types, spread(chosen.overload, len(args)))):
        return _call(node, function, None, args, receiver, result)
    call = _call(node, function, chosen.overload, args, receiver, result)
    return check_literals(context, call, function, chosen.overload) if isinstance(call, ir.Call) else call


def _call(
    node: ast.CallExpr,
    function: Function,
    overload: Overload | None,
    args: Sequence[ir.Node],
    receiver: bool,
    result: Type,
) -> ir.Node:
    """The call of an overload; without one, of that which the values of the arguments ask for."""
    if receiver and function.name in _OR_ELSE:
        operand, other = args
        return ir.OrElse(result, operand, other, _OR_ELSE[function.name], start=node.start, end=node.end)
    if overload is not None:
        id = overload.id
    else:
        id = f"{'.' if receiver else ''}{function.name}({','.join(['dyn'] * len(args))})"
    return ir.Call(result, id, tuple(args), start=node.start, end=node.end)


# --- what to say when nothing fits ------------------------------------------------------------------


def _unknown_function(context: Context, node: ast.CallExpr, name: str) -> ir.Node:
    shown = name.removeprefix(".")
    if context.environment.unchecked:
        return _unbound(node, shown)
    start = node.name_start if node.target is None else node.start
    close = nearest(shown, [*_names(context, False), *context.environment.user_functions])
    if close:
        help: str | None = f"did you mean `{close}`?"
    else:
        usage = _usage(shown) or called_elsewhere(node.function)
        help = f"write `{usage}`" if usage else None
    return context.fail(
        "KP207", f"unknown function `{shown}`", start, node.name_start + len(node.function), help, close
    )


def _unknown_method(context: Context, node: ast.CallExpr, name: str) -> ir.Node:
    if context.environment.unchecked:
        return _unbound(node, name)
    at = (node.name_start, node.name_start + len(node.function))
    usage = macro_usage(name) if context.environment.macros else None
    if usage is not None:
        return context.fail(
            "KP205",
            f"`{name}` does not take {len(node.args)} argument{'' if len(node.args) == 1 else 's'}",
            *at,
            f"write `{usage}`",
        )
    usage = called_elsewhere(name)
    close = None if usage else nearest(name, _names(context, True))
    help = f"write `{usage}`" if usage else f"did you mean `{close}`?" if close else None
    return context.fail("KP207", f"unknown method `{name}`", *at, help, close)


def _usage(name: str) -> str | None:
    """How the macro is written that a call of this name was to be."""
    return macro_usage(name.removeprefix("cel."))


def _unbound(node: ast.CallExpr, name: str) -> ir.Node:
    return ir.Call(DYN, "error(unbound)", (constant(STRING, name),), start=node.start, end=node.end)


def _names(context: Context, receiver: bool) -> list[str]:
    """The functions that are called in one style."""
    return [
        name
        for name, function in context.environment.functions.items()
        if any(overload.receiver == receiver for overload in function.overloads)
    ]


def _wrong_count(
    context: Context, node: ast.CallExpr, function: Function, args: Sequence[ir.Node], receiver: bool
) -> ir.Node:
    given = len(args) - receiver
    if context.environment.unchecked:
        message = constant(STRING, f"{function.name} does not take {given} arguments")
        return ir.Call(DYN, "error(no_such_overload)", (message,), start=node.start, end=node.end)
    at = (node.name_start, node.name_start + len(node.function))
    counts = sorted({len(each.params) - receiver for each in function.overloads if each.receiver == receiver})
    example = f"for example `{function.example}`" if function.example else None
    if not counts:
        if takers(function, len(args), not receiver):
            texts = [context.text(arg) for arg in args]
            written = f"{function.name}({', '.join(texts)})"
            if not receiver:
                written = f"{texts[0]}.{function.name}({', '.join(texts[1:])})"
            example = f"write `{written}`"
        style = "a function, not a method" if receiver else "a method"
        return context.fail("KP205", f"`{function.name}` is {style}", *at, example)
    wanted = " or ".join(map(str, counts))
    plural = "" if wanted == "1" else "s"
    return context.fail(
        "KP205",
        f"`{function.name}` takes {wanted} argument{plural}, {given} given",
        node.start,
        node.end,
        example,
    )


_SHOWN_SIGNATURES = 6


def _no_overload(
    context: Context, node: ast.CallExpr, function: Function, args: Sequence[ir.Node],
    overloads: Sequence[Overload], receiver: bool,
) -> ir.Node:  # fmt: skip
    name, types = function.name, [context.type(arg) for arg in args]
    if receiver and not any(_accepts(context, each.params[0], types[0]) for each in overloads):
        owners = _listed({short(each.params[0]) for each in overloads})
        assert node.target is not None
        return context.fail(
            "KP205", f"`{context.text(node.target)}` is {spoken(types[0])}, `{name}` belongs to {owners}",
            node.start, node.end,
        )  # fmt: skip
    given = ", ".join(short(context.unifier.final(each)) for each in types[receiver:])
    taken = {f"`{name}({', '.join(map(short, each.params[receiver:]))})`" for each in overloads}
    help = f"it is written {_listed(taken)}"
    if name in ("cpu", "memory", "bandwidth") and types[0] == INT:
        help = f'write `{name}("{context.text(node.args[0])}")`'
    elif not receiver and len(types) == 1 and takers(function, 1, True):
        help = f"of a list it is written `{context.text(node.args[0])}.{name}()`"
    elif name in KEEPS_UNIT and (one_type := _as_the_others(context, args, types)) is not None:
        help = one_type
    return context.fail("KP205", f"`{name}` does not take ({given})", node.start, node.end, help)


def _as_the_others(context: Context, args: Sequence[ir.Node], types: Sequence[Type]) -> str | None:
    """How a text among numbers becomes one of them."""
    number = next((each for each in types if each.is_number), None)
    text = next((arg for arg, given in zip(args, types, strict=True) if given == STRING), None)
    return None if number is None or text is None else as_number(context, text, number)


def _accepts(context: Context, param: Type, given: Type) -> bool:
    (fresh,) = context.unifier.instance((param,))
    return context.unifier.fits((given,), (fresh,))


def _listed(words: set[str]) -> str:
    shown = sorted(words)[:_SHOWN_SIGNATURES]
    more = f" and {len(words) - len(shown)} more" if len(words) > len(shown) else ""
    return " or ".join(shown) + more
