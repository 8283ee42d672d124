"""The math library, and `min`, `max` over arguments."""

import math
from collections.abc import Callable, Sequence

from koordpolicy.language.cel.errors import InvalidArgument, NoSuchOverload, Overflow
from koordpolicy.language.cel.functions import METERED_CALL, Function, Overload, Size
from koordpolicy.language.cel.library.row import function, plain, signature, tenths
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
from koordpolicy.language.cel.types import BOOL, DOUBLE, DURATION, DYN, INT, TIMESTAMP, UINT, list_of
from koordpolicy.language.cel.values import INT_MAX, UINT_MAX, UInt, Value
from koordpolicy.language.cel.values_equality import order

_LIB = "math"
_WORD = 64
_ALL_WHOLE = 2.0**52
"""From here on all doubles are whole, or infinite."""
_BELOW_HALF = 0.49999999999999994


def greatest(*values: Value) -> Value:
    """The greatest of the arguments; of equal ones the first. Raises NoSuchOverload."""
    return _extreme(values, 1)


def least(*values: Value) -> Value:
    """The least of the arguments; of equal ones the first. Raises NoSuchOverload."""
    return _extreme(values, -1)


def greatest_of(values: Sequence[Value], meter: Meter = UNMETERED) -> Value:
    """The greatest element of a list. Raises InvalidArgument when it is empty."""
    return _extreme(values, 1, meter)


def least_of(values: Sequence[Value], meter: Meter = UNMETERED) -> Value:
    """The least element of a list. Raises InvalidArgument when it is empty."""
    return _extreme(values, -1, meter)


def _extreme(values: Sequence[Value], sign: int, meter: Meter = UNMETERED) -> Value:
    if not values:
        raise InvalidArgument("the greatest or least of an empty list")
    charge(meter, _COMPARED * len(values))
    best = values[0]
    order(best, best, "min, max")  # refuses what has no order
    for value in values[1:]:
        if order(value, best, "min, max", meter) == sign:
            best = value
    return best


_COMPARED = 16
"""Units of comparing an element with the best before it."""


def _picking(sizes: tuple[Size, ...]) -> int:
    """Units of the greatest or least of the arguments; of two it is written out in place."""
    return METERED_CALL if len(sizes) == 2 else METERED_CALL + _COMPARED * len(sizes)


def price_of_extreme(sizes: tuple[Size, ...]) -> int:
    """Units of the greatest or least element of a list."""
    return METERED_CALL + _COMPARED * sizes[0].length + tenths(sizes[0].extent)


def numbers_only(pick: Callable[..., Value]) -> Callable[..., Value]:
    """`greatest` or `least` of arguments whose types only run time knows, or of one list."""

    def checked(*values: Value) -> Value:
        if len(values) == 1 and isinstance(values[0], (list, tuple)):
            values = tuple(values[0])
        for value in values:
            if type(value) not in (int, UInt, float):
                raise NoSuchOverload("`math.greatest` and `math.least` compare numbers")
        return pick(*values) if values else _extreme((), 1)

    return checked


def _round(value: float) -> float:
    """Half away from zero: cut, after a step of almost a half that no less than a half takes to the next."""
    if 0 < value < _ALL_WHOLE:
        return float(int(value + _BELOW_HALF))
    if -_ALL_WHOLE < value < 0:
        return -float(int(_BELOW_HALF - value))
    return value


def _whole(cut: Callable[[float], int]) -> Callable[[float], float]:
    def apply(value: float) -> float:
        return math.copysign(float(cut(value)), value) if math.isfinite(value) else value

    return apply


def _abs_int(value: int) -> int:
    if -value > INT_MAX:
        raise Overflow("the magnitude of the least int does not fit int")
    return abs(value)


def _same(value: UInt) -> UInt:
    return value


def _sign_int(value: int) -> int:
    return (value > 0) - (value < 0)


def _sign_uint(value: UInt) -> UInt:
    return UInt(value > 0)


def _sign_double(value: float) -> float:
    return value if value != value else float((value > 0) - (value < 0))


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _signed(word: int) -> int:
    word &= UINT_MAX
    return word - (1 << _WORD) if word > INT_MAX else word


def _and(a: int, b: int) -> int:
    return a & b


def _or(a: int, b: int) -> int:
    return a | b


def _xor(a: int, b: int) -> int:
    return a ^ b


def _not(a: int) -> int:
    return ~a


def _unsigned(operation: Callable[..., int]) -> Callable[..., UInt]:
    def apply(*operands: int) -> UInt:
        return UInt(operation(*map(int, operands)) & UINT_MAX)

    return apply


def _bits(offset: int) -> int:
    if offset < 0:
        raise InvalidArgument(f"a shift by {offset} bits")
    return min(offset, _WORD)


def _shift_left(value: int, offset: int) -> int:
    return _signed(value << _bits(offset))


def _shift_left_uint(value: UInt, offset: int) -> UInt:
    return UInt((int(value) << _bits(offset)) & UINT_MAX)


def _shift_right(value: int, offset: int) -> int:
    return _signed((value & UINT_MAX) >> _bits(offset))


def _shift_right_uint(value: UInt, offset: int) -> UInt:
    return UInt(int(value) >> _bits(offset))


_NUMBERS = (INT, UINT, DOUBLE)


def _pick(name: str, many: Callable[..., Value], one: Callable[..., Value]) -> tuple[Overload, ...]:
    return (
        *(signature(name, (kind,), kind, many, variadic=True, cost=_picking) for kind in _NUMBERS),
        *(signature(name, (list_of(kind),), kind, one, cost=price_of_extreme) for kind in _NUMBERS),
        signature(name, (list_of(DYN),), DYN, numbers_only(many), cost=price_of_extreme),
    )


def _double_row(name: str, summary: str, example: str, apply: Callable[[float], float]) -> Function:
    return plain(name, _LIB, summary, example, (DOUBLE,), DOUBLE, apply)


def _bit_row(name: str, summary: str, example: str, operands: int, apply: Callable[..., int]) -> Function:
    return function(
        name, _LIB, summary, example,
        signature(name, (INT,) * operands, INT, apply),
        signature(name, (UINT,) * operands, UINT, _unsigned(apply)),
    )  # fmt: skip


_ANY_ORDERED = (*_NUMBERS, DURATION, TIMESTAMP)

LIBRARY: tuple[Function, ...] = (
    function(
        "math.greatest", _LIB, "the greatest of numbers, or of a list of them",
        "math.greatest(1, 3, 2) == 3", *_pick("math.greatest", greatest, greatest_of),
    ),
    function(
        "math.least", _LIB, "the least of numbers, or of a list of them",
        "math.least(1, 3, 2) == 1", *_pick("math.least", least, least_of),
    ),
    function(
        "max", _LIB, "the greatest of values of one type and unit", "max(node.usage.system.cpu, node.reserved.cpu)",
        *(signature("max", (kind,), kind, greatest, variadic=True, cost=_picking) for kind in _ANY_ORDERED),
    ),
    function(
        "min", _LIB, "the least of values of one type and unit", "min(node.free.cpu, cpu('4'))",
        *(signature("min", (kind,), kind, least, variadic=True, cost=_picking) for kind in _ANY_ORDERED),
    ),
    _double_row("math.ceil", "the next whole number up", "math.ceil(1.2) == 2.0", _whole(math.ceil)),
    _double_row("math.floor", "the next whole number down", "math.floor(1.8) == 1.0", _whole(math.floor)),
    _double_row("math.round", "the nearest whole number, halves away from zero", "math.round(2.5) == 3.0", _round),
    _double_row("math.trunc", "without the fraction", "math.trunc(-1.8) == -1.0", _whole(math.trunc)),
    function(
        "math.abs", _LIB, "the magnitude", "math.abs(-2) == 2",
        signature("math.abs", (INT,), INT, _abs_int),
        signature("math.abs", (UINT,), UINT, _same),
        signature("math.abs", (DOUBLE,), DOUBLE, abs),
    ),
    function(
        "math.sign", _LIB, "-1, 0 or 1", "math.sign(-2.5) == -1.0",
        signature("math.sign", (INT,), INT, _sign_int),
        signature("math.sign", (UINT,), UINT, _sign_uint),
        signature("math.sign", (DOUBLE,), DOUBLE, _sign_double),
    ),
    function(
        "math.sqrt", _LIB, "the square root; NaN of a negative number", "math.sqrt(9) == 3.0",
        *(signature("math.sqrt", (kind,), DOUBLE, _sqrt) for kind in _NUMBERS),
    ),
    plain("math.isNaN", _LIB, "whether a double is not a number", "!math.isNaN(1.0)", (DOUBLE,), BOOL, math.isnan),
    plain("math.isInf", _LIB, "whether a double is infinite", "math.isInf(1.0 / 0.0)", (DOUBLE,), BOOL, math.isinf),
    plain("math.isFinite", _LIB, "whether a double is a number and finite", "math.isFinite(1.0)",
          (DOUBLE,), BOOL, math.isfinite),
    _bit_row("math.bitAnd", "bits set in both", "math.bitAnd(3, 5) == 1", 2, _and),
    _bit_row("math.bitOr", "bits set in either", "math.bitOr(3, 5) == 7", 2, _or),
    _bit_row("math.bitXor", "bits set in one of two", "math.bitXor(3, 5) == 6", 2, _xor),
    _bit_row("math.bitNot", "every bit turned", "math.bitNot(1) == -2", 1, _not),
    function(
        "math.bitShiftLeft", _LIB, "bits moved up; 0 from 64 on", "math.bitShiftLeft(1, 4) == 16",
        signature("math.bitShiftLeft", (INT, INT), INT, _shift_left),
        signature("math.bitShiftLeft", (UINT, INT), UINT, _shift_left_uint),
    ),
    function(
        "math.bitShiftRight", _LIB, "bits moved down, zeros coming in", "math.bitShiftRight(16, 4) == 1",
        signature("math.bitShiftRight", (INT, INT), INT, _shift_right),
        signature("math.bitShiftRight", (UINT, INT), UINT, _shift_right_uint),
    ),
)  # fmt: skip
