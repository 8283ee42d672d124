"""Equality, order and membership where static types do not settle them.

Numbers of all three types lie on one line. A double is compared with an integer by way of the
integer's nearest double, so the comparison loses digits near 2**63: CEL's reference does the same.

Lists, maps and long texts are charged before they are looked at, level by level: what stands in two places is
compared, and paid for, in both.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Final

from koordpolicy.language.cel.errors import NoSuchOverload
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
from koordpolicy.language.cel.values import (
    NONE,
    BoolKey,
    Duration,
    Optional,
    Timestamp,
    UInt,
    Value,
    key_of,
    type_name,
)

_NUMBERS = frozenset((int, UInt, float))
_LISTS = frozenset((list, tuple))
_ORDERED = frozenset((bool, str, bytes, Timestamp, Duration))
_TEXTS = frozenset((str, bytes))
_TWO_63 = float(2**63)
_TWO_64 = float(2**64)


ELEMENT: Final = 8
"""Units of comparing two elements whose types only run time knows."""

LONG_TEXT: Final = 512
"""Characters from which on comparing texts is charged."""

_COMPARED = 256
"""Characters that are compared for a unit."""


def equal(a: Value, b: Value, meter: Meter = UNMETERED) -> bool:
    """CEL's `==` on any two values; values of unlike types are unequal, never an error."""
    kind, other = type(a), type(b)
    if kind in _NUMBERS and other in _NUMBERS:
        return numbers_equal(a, b)  # type: ignore[arg-type]
    if kind in _LISTS:
        return other in _LISTS and lists_equal(a, b, meter)  # type: ignore[arg-type]
    if kind is not other:
        return False
    if kind is dict:
        return maps_equal(a, b, meter)  # type: ignore[arg-type]
    if kind is Optional:
        return optionals_equal(a, b, meter)  # type: ignore[arg-type]
    if kind in _TEXTS and len(a) > LONG_TEXT:  # type: ignore[arg-type]
        charge(meter, price_of_compared(a, b))  # type: ignore[arg-type]
    return a == b


def price_of_compared(a: str | bytes, b: str | bytes) -> int:
    """Units of comparing two texts, of which Python compares the characters."""
    return min(len(a), len(b)) // _COMPARED


def numbers_equal(a: float, b: float) -> bool:
    """`==` across int, uint and double."""
    if type(a) is float:
        if type(b) is float:
            return a == b
        return _sign_double(a, b) == 0
    if type(b) is float:
        return _sign_double(b, a) == 0
    return a == b


def _sign_double(d: float, i: float) -> int | None:
    """-1, 0, 1 as double `d` is less than, equal to, greater than integer `i`; None for NaN."""
    if d != d:
        return None
    low, high = (0.0, _TWO_64) if type(i) is UInt else (-_TWO_63, _TWO_63)
    if d < low:
        return -1
    if d > high:
        return 1
    rounded = float(i)
    return (d > rounded) - (d < rounded)


def lists_equal(a: "list[Value]", b: "list[Value]", meter: Meter = UNMETERED) -> bool:
    """Same length and pairwise equal. Not Python's `==`, which holds a NaN equal to itself."""
    if len(a) != len(b):
        return False
    charge(meter, ELEMENT * len(a))
    return all(map(equal, a, b, repeat(meter)))


def maps_equal(a: "dict[object, Value]", b: "dict[object, Value]", meter: Meter = UNMETERED) -> bool:
    """Same keys, numbers matching across types, and equal values."""
    if len(a) != len(b):
        return False
    charge(meter, 2 * ELEMENT * len(a))
    return all(key in b and equal(value, b[key], meter) for key, value in a.items())


def optionals_equal(a: Optional, b: Optional, meter: Meter = UNMETERED) -> bool:
    """Both none, or both with equal values."""
    if a is NONE or b is NONE:
        return a is b
    charge(meter, ELEMENT)
    return equal(a.value, b.value, meter)


def order(a: Value, b: Value, operator: str, meter: Meter = UNMETERED) -> int | None:
    """-1, 0 or 1 as `a` is less, equal or greater; None when a NaN is involved.

    Raises NoSuchOverload for values that have no order. `operator` is for the message.
    """
    kind, other = type(a), type(b)
    if kind in _NUMBERS and other in _NUMBERS:
        if kind is float and other is not float:
            return _sign_double(a, b)  # type: ignore[arg-type]
        if other is float and kind is not float:
            sign = _sign_double(b, a)  # type: ignore[arg-type]
            return None if sign is None else -sign
        if a != a or b != b:
            return None
    elif kind is not other or kind not in _ORDERED:
        raise NoSuchOverload(f"`{operator}` does not compare {type_name(a)} with {type_name(b)}")
    elif kind in _TEXTS and len(a) > LONG_TEXT:  # type: ignore[arg-type]
        charge(meter, 2 * price_of_compared(a, b))  # type: ignore[arg-type]
    return bool(b < a) - bool(a < b)  # type: ignore[operator]


def less(a: Value, b: Value, meter: Meter = UNMETERED) -> bool:
    """CEL's `<`."""
    return order(a, b, "<", meter) == -1


def less_equal(a: Value, b: Value, meter: Meter = UNMETERED) -> bool:
    """CEL's `<=`."""
    return order(a, b, "<=", meter) in (-1, 0)


def greater(a: Value, b: Value, meter: Meter = UNMETERED) -> bool:
    """CEL's `>`."""
    return order(a, b, ">", meter) == 1


def greater_equal(a: Value, b: Value, meter: Meter = UNMETERED) -> bool:
    """CEL's `>=`."""
    return order(a, b, ">=", meter) in (0, 1)


def contains(value: Value, container: Value, meter: Meter = UNMETERED) -> bool:
    """CEL's `in`: an element of a list, or a key of a map. Raises NoSuchOverload on others."""
    kind = type(container)
    if kind in _LISTS:
        return in_list(value, container, meter)  # type: ignore[arg-type]
    if kind is dict:
        if type(value) is str and len(value) > LONG_TEXT:
            charge(meter, len(value) // _COMPARED)
        return in_map(value, container)  # type: ignore[arg-type]
    raise NoSuchOverload(f"`in` needs a list or a map, not {type_name(container)}")


def in_list(value: Value, container: "Sequence[Value]", meter: Meter = UNMETERED) -> bool:
    """Whether an element equals the value."""
    charge(meter, ELEMENT * len(container))
    return any(equal(value, element, meter) for element in container)


def among_texts(meter: Meter, value: str, container: "list[str]") -> bool:
    """Whether a text is among others."""
    charge(meter, len(container) * (1 + len(value) // _COMPARED))
    return value in container


def among_numbers(meter: Meter, value: int, container: "list[int]") -> bool:
    """Whether an int or bool is among others of its type."""
    charge(meter, len(container))
    return value in container


_KEYS = frozenset((str, int, UInt, float, bool, BoolKey))


def in_map(value: Value, container: "dict[object, Value]") -> bool:
    """Whether the value is a key; a value that cannot be one is simply absent."""
    return type(value) in _KEYS and key_of(value) in container


_RANKS = {bool: 0, int: 1, UInt: 1, float: 1, str: 2}


def key_order(value: Value) -> tuple[int, Value]:
    """A sort key for the keys of a map (as CEL values), whatever their types."""
    return (_RANKS[type(value)], value)
