"""Checked casts: what only run time can tell (dyn, lists of dyn) given the type that its place declares.

An expression's static type is a promise that both back ends rely on. Where a looser type meets a declared one (a slot,
a constant, a parameter of a function) the promise is kept by an `ir.Cast`, so that nothing behind it ever sees a value
of another type.
"""

from collections.abc import Callable
from dataclasses import replace

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError, NotPermitted, WrongType
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
from koordpolicy.language.cel.permitted import Permitted, elements
from koordpolicy.language.cel.types import DOUBLE, Type
from koordpolicy.language.cel.values import NONE, Duration, Optional, UInt, Value, key_value, type_name
from koordpolicy.language.cel.values_time import format_duration
from koordpolicy.language.cel.wording import short, wished

Cast = Callable[..., Value]
"""Takes the value, and the meter where its parts are looked at."""

_OPEN = frozenset(("dyn", "param", "error"))
_OPENING = "dyn("
"""How the overload begins that gives its argument without a type."""
_SIMPLE = frozenset(("bool", "int", "uint", "double", "string"))
_WHOLE = frozenset(("int", "uint"))


def cast(node: ir.Node, wanted: Type) -> ir.Node:
    """The expression as one of the type `wanted`, checked at run time unless its own type promises that already.

    For nodes whose type may stand where `wanted` is asked for. A constant of another type keeps its cast, which fails
    when it is reached.
    """
    if node.type.name == "error" or not is_open(node.type) or is_open(wanted):
        return node
    if isinstance(node, ir.Const):
        try:
            return constant(wanted, caster(wanted)(node.value), node.start, node.end)
        except CelError:
            pass
    return ir.Cast(wanted, node, start=node.start, end=node.end)


def strangers(node: ir.Node, wanted: Type) -> list[ir.Node]:
    """The parts of an expression without a type of its own that it may give, and that are surely no values of `wanted`."""
    if node.type.name not in _OPEN or wanted.name not in _SIMPLE:
        return []
    found: list[ir.Node] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        name = type_name(part.value) if isinstance(part, ir.Const) else part.type.name
        if isinstance(part, ir.Cond):
            waiting += (part.otherwise, part.then)
        elif isinstance(part, ir.Call) and part.overload.startswith(_OPENING):
            waiting += part.args
        elif (
            name not in _OPEN and name != wanted.name and not (wanted.name == DOUBLE.name and name in _WHOLE)
        ):
            found.append(part)
    return found


def limited(node: ir.Node, permitted: Permitted) -> ir.Node:
    """The expression as one whose values its place takes, checked at run time where only that can tell.

    A constant that is not permitted keeps its cast, which fails when it is reached.
    """
    match node:
        case ir.Const(value=value) if permitted.admits(value):
            return node
        case ir.Cond():
            then, otherwise = limited(node.then, permitted), limited(node.otherwise, permitted)
            return replace(node, then=then, otherwise=otherwise)
    return ir.Cast(node.type, node, permitted, start=node.start, end=node.end)


def is_open(kind: Type) -> bool:
    """Whether a type leaves open, in itself or in its parts, what only run time can tell."""
    return kind.name in _OPEN or any(map(is_open, kind.params))


def caster(wanted: Type, permitted: Permitted | None = None) -> Cast:
    """The function that gives back a value of the type, and raises WrongType for any other, and NotPermitted for one
    that is not `permitted`.

    A whole number stands for a double, and a value for an optional of it, as they do where types are known. Values that share parts are visited part by
    part, each once.
    """

    def apply(value: Value, meter: Meter = UNMETERED) -> Value:
        if whole and type(value) in (int, UInt):
            return float(value)  # type: ignore[arg-type]
        if optional and type(value) is not Optional:
            value = Optional(value)
        stranger = _stranger(value, wanted, meter)
        if stranger is None:
            if permitted is not None and not permitted.admits(value):
                raise NotPermitted(f"{shown(value, permitted)} is not permitted: write {permitted.words}")
            return value
        what = "the value is" if stranger[0] is value else "a part of the value is"
        given = short(Type(type_name(stranger[0])))
        raise WrongType(f"{wished(replace(wanted, unit=None))} is wanted, {what} of type {given}")

    whole, optional = wanted.name == DOUBLE.name, wanted.name == "optional_type"
    return apply


def shown(value: Value, permitted: Permitted) -> str:
    """The part of a value that is not permitted, short."""
    strange = next((one for one in elements(value) if not permitted.admits(one)), value)
    text = format_duration(strange) if isinstance(strange, Duration) else str(strange)
    return f"`{text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}`"


_SHOWN = 60

CAST = 24
"""Units of looking at the type of a part."""


def _stranger(value: Value, wanted: Type, meter: Meter) -> tuple[Value] | None:
    """The first part of a value that is not of its type."""
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[Value, Type]] = [(value, wanted)]
    while stack:
        charge(meter, CAST)
        part, kind = stack.pop()
        name = "map" if kind.name == "record" else kind.name
        if name in _OPEN:
            continue
        if type_name(part) != name:
            return (part,)
        if not kind.params or name == "type":
            continue
        if (id(part), id(kind)) in seen:
            continue
        seen.add((id(part), id(kind)))
        stack.extend(_parts(part, kind))
    return None


def _parts(value: Value, kind: Type) -> list[tuple[Value, Type]]:
    """The parts of a value whose type has parameters, each with its own type."""
    match value:
        case dict():
            keys, held = kind.params
            pairs = [] if is_any(keys) else [(key_value(key), keys) for key in value]
            return pairs if is_any(held) else [*pairs, *((one, held) for one in value.values())]
        case Optional():
            return [] if value is NONE else [(value.value, kind.params[0])]
        case list() | tuple():
            return [] if is_any(kind.params[0]) else [(one, kind.params[0]) for one in value]
    return []


def is_any(kind: Type) -> bool:
    """Whether every value is of the type."""
    return kind.name in _OPEN
