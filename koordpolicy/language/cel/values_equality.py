"""Equality, order and membership where static types do not settle them.

Numbers of all three types lie on one line. A double is compared with an integer by way of the
integer's nearest double, so the comparison loses digits near 2**63: CEL's reference does the same.
"""

from koordpolicy.language.cel.errors import NoSuchOverload
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
_TWO_63 = float(2**63)
_TWO_64 = float(2**64)


def equal(a: Value, b: Value) -> bool:
    """CEL's `==` on any two values; values of unlike types are unequal, never an error."""
    kind, other = type(a), type(b)
    if kind in _NUMBERS and other in _NUMBERS:
        return numbers_equal(a, b)  # type: ignore[arg-type]
    if kind in _LISTS:
        return other in _LISTS and lists_equal(a, b)  # type: ignore[arg-type]
    if kind is not other:
        return False
    if kind is dict:
        return maps_equal(a, b)  # type: ignore[arg-type]
    if kind is Optional:
        return optionals_equal(a, b)  # type: ignore[arg-type]
    return a == b


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


def lists_equal(a: "list[Value]", b: "list[Value]") -> bool:
    """Same length and pairwise equal. Not Python's `==`, which holds a NaN equal to itself."""
    return len(a) == len(b) and all(map(equal, a, b))


def maps_equal(a: "dict[object, Value]", b: "dict[object, Value]") -> bool:
    """Same keys, numbers matching across types, and equal values."""
    if len(a) != len(b):
        return False
    return all(key in b and equal(value, b[key]) for key, value in a.items())


def optionals_equal(a: Optional, b: Optional) -> bool:
    """Both none, or both with equal values."""
    if a is NONE or b is NONE:
        return a is b
    return equal(a.value, b.value)


def order(a: Value, b: Value, operator: str) -> int | None:
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
    return bool(b < a) - bool(a < b)  # type: ignore[operator]


def less(a: Value, b: Value) -> bool:
    """CEL's `<`."""
    return order(a, b, "<") == -1


def less_equal(a: Value, b: Value) -> bool:
    """CEL's `<=`."""
    return order(a, b, "<=") in (-1, 0)


def greater(a: Value, b: Value) -> bool:
    """CEL's `>`."""
    return order(a, b, ">") == 1


def greater_equal(a: Value, b: Value) -> bool:
    """CEL's `>=`."""
    return order(a, b, ">=") in (0, 1)


def contains(value: Value, container: Value) -> bool:
    """CEL's `in`: an element of a list, or a key of a map. Raises NoSuchOverload on others."""
    kind = type(container)
    if kind in _LISTS:
        return in_list(value, container)  # type: ignore[arg-type]
    if kind is dict:
        return in_map(value, container)  # type: ignore[arg-type]
    raise NoSuchOverload(f"`in` needs a list or a map, not {type_name(container)}")


def in_list(value: Value, container: "list[Value]") -> bool:
    """Whether an element equals the value."""
    return any(equal(value, element) for element in container)


_KEYS = frozenset((str, int, UInt, float, bool, BoolKey))


def in_map(value: Value, container: "dict[object, Value]") -> bool:
    """Whether the value is a key; a value that cannot be one is simply absent."""
    return type(value) in _KEYS and key_of(value) in container


_RANKS = {bool: 0, int: 1, UInt: 1, float: 1, str: 2}


def key_order(value: Value) -> tuple[int, Value]:
    """A sort key for the keys of a map (as CEL values), whatever their types."""
    return (_RANKS[type(value)], value)
