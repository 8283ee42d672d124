"""Kubernetes' quantities: exact numbers with suffixes, as resources are written."""

import re
from collections.abc import Callable

from koordpolicy.language.cel.errors import InvalidArgument, Overflow
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.row import function, method, plain, reads, signature
from koordpolicy.language.cel.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, Quantity

_LIB = "kubernetes"
_NANO = 10**9
_TEXT_LIMIT = 64
PARSING = 100
"""Units of reading a short quantity."""
_QUANTITY = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?")
_SCALE = {
    "n": 1, "u": 10**3, "m": 10**6, "": _NANO, "k": _NANO * 10**3,
    "M": _NANO * 10**6, "G": _NANO * 10**9, "T": _NANO * 10**12,
    "P": _NANO * 10**15, "E": _NANO * 10**18, "Ki": _NANO << 10, "Mi": _NANO << 20,
    "Gi": _NANO << 30, "Ti": _NANO << 40, "Pi": _NANO << 50, "Ei": _NANO << 60,
}  # fmt: skip


def parse_quantity(text: str) -> Quantity:
    """Read a quantity such as `500m`, `1.5Gi`, `1e3`. Raises InvalidArgument.

    What is finer than a nano is rounded away from zero, as Kubernetes does.
    """
    found = _QUANTITY.fullmatch(text) if len(text) <= _TEXT_LIMIT else None
    if found is None:
        raise InvalidArgument(f"`{text[:_TEXT_LIMIT]}` is no quantity such as 500m, 4, 1.5Gi")
    sign, number, suffix, exponent = found.groups()
    whole, _, fraction = number.partition(".")
    numerator, denominator = int(whole + fraction), 10 ** len(fraction)
    factor = _SCALE[suffix or ""]
    if exponent:
        power = int(exponent)
        factor, denominator = factor * 10 ** max(power, 0), denominator * 10 ** max(-power, 0)
    nanos = -(-numerator * factor // denominator)
    return Quantity(-nanos if sign == "-" else nanos)


def _accepts(text: str) -> bool:
    try:
        parse_quantity(text)
    except InvalidArgument:
        return False
    return True


def _is_integer(value: Quantity) -> bool:
    return value.nanos % _NANO == 0 and INT_MIN <= value.nanos // _NANO <= INT_MAX


def _as_integer(value: Quantity) -> int:
    if value.nanos % _NANO:
        raise InvalidArgument("the quantity has a fraction")
    if not _is_integer(value):
        raise Overflow("the quantity does not fit int")
    return value.nanos // _NANO


def _as_float(value: Quantity) -> float:
    try:
        return value.nanos / _NANO
    except OverflowError:
        raise Overflow("the quantity does not fit double") from None


def _sign(value: Quantity) -> int:
    return (value.nanos > 0) - (value.nanos < 0)


def _of_int(value: int) -> Quantity:
    return Quantity(value * _NANO)


def _add(a: Quantity, b: Quantity) -> Quantity:
    return Quantity(a.nanos + b.nanos)


def _sub(a: Quantity, b: Quantity) -> Quantity:
    return Quantity(a.nanos - b.nanos)


def _with_int(apply: Callable[[Quantity, Quantity], Quantity]) -> Callable[[Quantity, int], Quantity]:
    return lambda a, b: apply(a, _of_int(b))


def _less(a: Quantity, b: Quantity) -> bool:
    return a.nanos < b.nanos


def _greater(a: Quantity, b: Quantity) -> bool:
    return a.nanos > b.nanos


def _compare(a: Quantity, b: Quantity) -> int:
    return (a.nanos > b.nanos) - (a.nanos < b.nanos)


_TWO = (QUANTITY, QUANTITY)

LIBRARY: tuple[Function, ...] = (
    plain("quantity", _LIB, "a Kubernetes quantity from text", "quantity('1.5Gi').isGreaterThan(quantity('1G'))",
          (STRING,), QUANTITY, parse_quantity, reads(0, base=PARSING)),
    plain("isQuantity", _LIB, "whether a text is a quantity", "isQuantity('500m')", (STRING,), BOOL, _accepts, reads(0, base=PARSING)),
    method("isInteger", _LIB, "whether a quantity is whole and fits int", "quantity('4').isInteger()",
           (QUANTITY,), BOOL, _is_integer),
    method("asInteger", _LIB, "a whole quantity as int", "quantity('1k').asInteger() == 1000", (QUANTITY,), INT, _as_integer),
    method("asApproximateFloat", _LIB, "a quantity as the nearest double", "quantity('500m').asApproximateFloat() == 0.5",
           (QUANTITY,), DOUBLE, _as_float),
    method("sign", _LIB, "-1, 0 or 1", "quantity('-1').sign() == -1", (QUANTITY,), INT, _sign),
    function(
        "add", _LIB, "the sum with a quantity or an int", "quantity('1k').add(24)",
        signature("add", _TWO, QUANTITY, _add, receiver=True),
        signature("add", (QUANTITY, INT), QUANTITY, _with_int(_add), receiver=True),
    ),
    function(
        "sub", _LIB, "the difference to a quantity or an int", "quantity('1k').sub(quantity('1'))",
        signature("sub", _TWO, QUANTITY, _sub, receiver=True),
        signature("sub", (QUANTITY, INT), QUANTITY, _with_int(_sub), receiver=True),
    ),
    method("isLessThan", _LIB, "whether it is less than another", "quantity('1').isLessThan(quantity('2'))",
           _TWO, BOOL, _less),
    method("isGreaterThan", _LIB, "whether it is greater than another", "quantity('2').isGreaterThan(quantity('1'))",
           _TWO, BOOL, _greater),
    method("compareTo", _LIB, "-1, 0 or 1 as it is less than, equal to, greater than another",
           "quantity('1').compareTo(quantity('1.0')) == 0", _TWO, INT, _compare),
)  # fmt: skip
