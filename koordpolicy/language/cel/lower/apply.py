"""One strict operator or function applied to values, outside of any program."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.lower import runtime
from koordpolicy.language.cel.lower.dispatch import dispatcher
from koordpolicy.language.cel.meter import Meter, Metered
from koordpolicy.language.cel.values import Value
from koordpolicy.language.cel.values_equality import contains, equal, greater, greater_equal, less, less_equal


def _scale(quantity: int, ratio: float) -> int:
    return runtime.whole(quantity * ratio)


def _percent_of(quantity: int, points: float) -> int:
    return runtime.whole(quantity * points / 100.0)


def _divide(quantity: int, ratio: float) -> int:
    return runtime.whole(quantity / ratio) if ratio else runtime.zero_divisor()


def _quotient(a: float, b: float) -> float:
    return a * 1.0 / b if b else runtime.zero_divisor()


def _not(value: Value) -> bool:
    return not runtime.as_bool(value)


def _differ(a: Value, b: Value, meter: Meter) -> bool:
    return not equal(a, b, meter)


_CHARGING: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        "_+_": runtime.add, "_==_": equal, "_!=_": _differ, "_<_": less, "_<=_": less_equal, "_>_": greater,
        "_>=_": greater_equal, "@in": contains,
    }
)  # fmt: skip
"""Operators whose work may grow with their operands."""

_OPERATORS: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        "_-_": runtime.subtract, "_*_": runtime.multiply, "_/_": runtime.divide,
        "_%_": runtime.modulo, "-_": runtime.negate, "!_": _not,
        "scale": _scale, "percent_of": _percent_of, "divide": _divide, "quotient": _quotient,
    }
)  # fmt: skip


def implementation(overload: str, functions: Mapping[str, Function]) -> Metered | None:
    """The function of the meter and the values behind an overload id, operators included; None for none.

    The `error(..)` ids of unchecked expressions have none.
    """
    name = overload.partition("(")[0]
    if name in _CHARGING:
        return partial(_metered, _CHARGING[name])
    if name in _OPERATORS:
        return partial(_unmetered, _OPERATORS[name])
    row = functions.get(name.removeprefix("."))
    if row is None:
        return None
    named = next((known for known in row.overloads if known.id == overload), None)
    if named is None:
        return dispatcher(overload, functions)
    return named.metered or partial(_unmetered, named.implementation)


def _metered(operator: Callable[..., Value], meter: Meter, *values: Value) -> Value:
    return operator(*values, meter)


def _unmetered(function: Callable[..., Value], meter: Meter, *values: Value) -> Value:
    return function(*values)
