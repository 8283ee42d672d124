"""Operators on numbers, texts, lists and times: those that templates call, and those whose operand
types only run time knows.
"""

import math
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from koordpolicy.language.cel.errors import DivisionByZero, LimitExceeded, NoSuchOverload, Overflow
from koordpolicy.language.cel.functions import price_of_made
from koordpolicy.language.cel.library.limits import MAX_TEXT, check_list
from koordpolicy.language.cel.lower.runtime.faults import overflow, refused
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
from koordpolicy.language.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Timestamp,
    UInt,
    Value,
    type_name,
)
from koordpolicy.language.cel.values_time import make_duration, make_timestamp

_ZERO = "division by zero"
_List = Sequence[Value]


# Arithmetic of static types


def int_divide(a: int, b: int) -> int:
    """`a / b` toward zero."""
    if b == 0:
        raise DivisionByZero(_ZERO)
    if a >= 0:
        return a // b if b > 0 else -(a // -b)
    if b > 0:
        return -(-a // b)
    if a == INT_MIN and b == -1:
        overflow()
    return -a // -b


def int_modulo(a: int, b: int) -> int:
    """`a % b` with the sign of `a`."""
    if b == 0:
        raise DivisionByZero("modulus by zero")
    if a == INT_MIN and b == -1:
        overflow()  # the remainder would be 0, but every engine computes the quotient with it
    return a % abs(b) if a >= 0 else -(-a % abs(b))


def uint_add(a: int, b: int) -> UInt:
    """`a + b` of unsigned integers."""
    return _uint(int(a) + int(b))


def uint_subtract(a: int, b: int) -> UInt:
    """`a - b` of unsigned integers."""
    return _uint(int(a) - int(b))


def uint_multiply(a: int, b: int) -> UInt:
    """`a * b` of unsigned integers."""
    return _uint(int(a) * int(b))


def _uint(result: int) -> UInt:
    if not 0 <= result <= UINT_MAX:
        overflow()
    return UInt(result)


def uint_divide(a: int, b: int) -> UInt:
    """`a / b` of unsigned integers."""
    if b == 0:
        raise DivisionByZero(_ZERO)
    return UInt(int(a) // int(b))


def uint_modulo(a: int, b: int) -> UInt:
    """`a % b` of unsigned integers."""
    if b == 0:
        raise DivisionByZero("modulus by zero")
    return UInt(int(a) % int(b))


def divide_by_zero(a: float, b: float) -> float:
    """`a / b` of doubles where b is a zero: an infinity or NaN."""
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def double_divide(a: float, b: float) -> float:
    """`a / b` of doubles as IEEE 754 has it."""
    return a / b if b else divide_by_zero(a, b)


def whole(value: float) -> int:
    """The rounded-toward-zero result of quantity arithmetic. Raises Overflow when it does not fit."""
    if not -(2.0**63) < value < 2.0**63:
        raise Overflow("the result does not fit a quantity")
    return int(value)


def zero_divisor() -> NoReturn:
    """Raise the error of a quotient by zero."""
    raise DivisionByZero(_ZERO)


def join_texts(a: str, b: str, meter: Meter = UNMETERED) -> str:
    """`a + b` of strings."""
    size = len(a) + len(b)
    if size > MAX_TEXT:
        raise LimitExceeded(f"a string of more than {MAX_TEXT} characters")
    charge(meter, price_of_made(size, True))
    return a + b


def join_bytes(a: bytes, b: bytes, meter: Meter = UNMETERED) -> bytes:
    """`a + b` of bytes."""
    size = len(a) + len(b)
    if size > MAX_TEXT:
        raise LimitExceeded(f"more than {MAX_TEXT} bytes")
    charge(meter, price_of_made(size, True))
    return a + b


def join_lists(a: _List, b: _List, meter: Meter = UNMETERED) -> list[Value]:
    """`a + b` of lists."""
    size = len(a) + len(b)
    check_list(size)
    charge(meter, price_of_made(size, False))
    return [*a, *b]


def text_within(text: str, part: str, meter: Meter = UNMETERED) -> bool:
    """Whether a long text holds another."""
    charge(meter, price_of_made(len(text) + len(part), True))
    return part in text


_Text = TypeVar("_Text", str, bytes)


def long_text(meter: Meter, text: _Text) -> _Text:
    """A long text that a loop compares or looks up."""
    charge(meter, len(text) // 256)
    return text


def shift(a: Timestamp, b: Duration) -> Timestamp:
    """Timestamp plus duration."""
    return make_timestamp(a.ns + b.ns)


def shift_back(a: Timestamp, b: Duration) -> Timestamp:
    """Timestamp minus duration."""
    return make_timestamp(a.ns - b.ns)


def between(a: Timestamp, b: Timestamp) -> Duration:
    """Timestamp minus timestamp."""
    return make_duration(a.ns - b.ns)


def longer(a: Duration, b: Duration) -> Duration:
    """Duration plus duration."""
    return make_duration(a.ns + b.ns)


def shorter(a: Duration, b: Duration) -> Duration:
    """Duration minus duration."""
    return make_duration(a.ns - b.ns)


# Operators whose operand types only run time knows


def _int_add(a: int, b: int) -> int:
    return _int(a + b)


def _int_subtract(a: int, b: int) -> int:
    return _int(a - b)


def _int_multiply(a: int, b: int) -> int:
    return _int(a * b)


def _int(result: int) -> int:
    if not INT_MIN <= result <= INT_MAX:
        overflow()
    return result


_Table = dict[tuple[type, type], Callable[..., Value]]
_ADD: _Table = {
    (int, int): _int_add, (UInt, UInt): uint_add, (float, float): lambda a, b: a + b,
    (Timestamp, Duration): shift, (Duration, Timestamp): lambda a, b: shift(b, a), (Duration, Duration): longer,
}  # fmt: skip
_SUBTRACT: _Table = {
    (int, int): _int_subtract, (UInt, UInt): uint_subtract, (float, float): lambda a, b: a - b,
    (Timestamp, Duration): shift_back, (Timestamp, Timestamp): between, (Duration, Duration): shorter,
}  # fmt: skip
_MULTIPLY: _Table = {
    (int, int): _int_multiply, (UInt, UInt): uint_multiply, (float, float): lambda a, b: a * b,
}  # fmt: skip
_DIVIDE: _Table = {(int, int): int_divide, (UInt, UInt): uint_divide, (float, float): double_divide}
_MODULO: _Table = {(int, int): int_modulo, (UInt, UInt): uint_modulo}


def _dynamic(operator: str, table: _Table) -> Callable[[Value, Value], Value]:
    def apply(a: Value, b: Value) -> Value:
        operation = table.get((type(a), type(b)))
        if operation is None:
            raise refused(operator, a, b)
        return operation(a, b)

    return apply


_add = _dynamic("+", _ADD)
_JOINED: _Table = {
    (str, str): join_texts, (bytes, bytes): join_bytes,
    (list, list): join_lists, (list, tuple): join_lists, (tuple, list): join_lists, (tuple, tuple): join_lists,
}  # fmt: skip


def add(a: Value, b: Value, meter: Meter = UNMETERED) -> Value:
    """`a + b`."""
    join = _JOINED.get((type(a), type(b)))
    return _add(a, b) if join is None else join(a, b, meter)


subtract = _dynamic("-", _SUBTRACT)
multiply = _dynamic("*", _MULTIPLY)
divide = _dynamic("/", _DIVIDE)
modulo = _dynamic("%", _MODULO)


def negate(a: Value) -> Value:
    """Unary minus."""
    if type(a) is int:
        return _int(-a)
    if type(a) is float:
        return -a
    raise refused("-", a)


def negate_int(a: int) -> int:
    """Unary minus of an int."""
    return _int(-a)


def as_bool(value: Value) -> bool:
    """A condition or operand of logic. Raises NoSuchOverload unless it is a bool."""
    if value is True or value is False:
        return value
    raise NoSuchOverload(f"a condition must be bool, here it is {type_name(value)}")
