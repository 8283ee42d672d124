"""What generated code calls: the operators where static types don't settle the operation, and errors.

Every function raises `EvaluationError` (or `LimitExceeded`) and nothing else for values that the
`values` module describes.
"""

import math
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import NoReturn, TypeVar

from koordpolicy.language.cel.errors import (
    DivisionByZero,
    EvaluationError,
    InvalidArgument,
    LimitExceeded,
    NoSuchKey,
    NoSuchOverload,
    Overflow,
    Unbound,
)
from koordpolicy.language.cel.library.limits import MAX_STEPS, MAX_TEXT, check_list, too_many_steps
from koordpolicy.language.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    Duration,
    Optional,
    Timestamp,
    UInt,
    Value,
    key_of,
    key_value,
    type_name,
)
from koordpolicy.language.cel.values_equality import key_order
from koordpolicy.language.cel.values_time import make_duration, make_timestamp

_ZERO = "division by zero"
_SHOWN = 60
_Map = dict[object, Value]
_List = Sequence[Value]
_Sized = TypeVar("_Sized", bound=Sized)


# Errors


def overflow() -> NoReturn:
    """Raise the error of an integer result outside its range."""
    raise Overflow("the result does not fit its integer type")


def unbound(name: str) -> NoReturn:
    """Raise the error of a name that nothing declares."""
    raise Unbound(f"undeclared reference to `{name}`")


def no_overload(message: str) -> NoReturn:
    """Raise the error of a call that no signature takes."""
    raise NoSuchOverload(message)


def no_such_key(key: object) -> NoSuchKey:
    """The error of a map without `key`."""
    shown = repr(key_value(key))
    return NoSuchKey(f"no such key: {shown[:_SHOWN]}")


def steps_exceeded() -> NoReturn:
    """Raise the error of comprehensions that visit too many elements."""
    raise too_many_steps()


def spend(steps: list[int], value: _Sized) -> _Sized:
    """Count a list or text that a loop makes as steps: elements, or eight characters each."""
    steps[0] += len(value) if isinstance(value, list) else len(value) // 8 + 1
    if steps[0] > MAX_STEPS:
        steps_exceeded()
    return value


def _refuse(operator: str, *operands: Value) -> NoReturn:
    raise NoSuchOverload(f"`{operator}` does not take {', '.join(map(type_name, operands))}")


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


def join_texts(a: str, b: str) -> str:
    """`a + b` of strings."""
    if len(a) + len(b) > MAX_TEXT:
        raise LimitExceeded(f"a string of more than {MAX_TEXT} characters")
    return a + b


def join_bytes(a: bytes, b: bytes) -> bytes:
    """`a + b` of bytes."""
    if len(a) + len(b) > MAX_TEXT:
        raise LimitExceeded(f"more than {MAX_TEXT} bytes")
    return a + b


def join_lists(a: _List, b: _List) -> list[Value]:
    """`a + b` of lists."""
    check_list(len(a) + len(b))
    return [*a, *b]


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
    (str, str): join_texts, (bytes, bytes): join_bytes,
    (list, list): join_lists, (list, tuple): join_lists, (tuple, list): join_lists, (tuple, tuple): join_lists,
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
            _refuse(operator, a, b)
        return operation(a, b)

    return apply


add = _dynamic("+", _ADD)
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
    _refuse("-", a)


def negate_int(a: int) -> int:
    """Unary minus of an int."""
    return _int(-a)


def as_bool(value: Value) -> bool:
    """A condition or operand of logic. Raises NoSuchOverload unless it is a bool."""
    if value is True or value is False:
        return value
    raise NoSuchOverload(f"a condition must be bool, here it is {type_name(value)}")


# Selection and indexing


def get_key(container: _Map, key: Value) -> Value:
    """An entry of a map."""
    try:
        return container[key_of(key)]
    except (KeyError, TypeError):  # TypeError: a list or map, which Python cannot look up
        raise no_such_key(key) from None


def get_element(container: _List, index: Value) -> Value:
    """An element of a list by an index of any number type."""
    at = _position(index)
    if 0 <= at < len(container):
        return container[at]
    raise InvalidArgument(f"index {at} is outside a list of {len(container)}")


def _position(index: Value) -> int:
    if type(index) is int or type(index) is UInt:
        return index
    if type(index) is float and index.is_integer():
        return int(index)
    raise InvalidArgument(f"{type_name(index)} is no index of a list")


def index(container: Value, at: Value) -> Value:
    """`container[at]` for a map, a list or an optional of them (whose result is an optional)."""
    if type(container) is dict:
        return get_key(container, at)
    if isinstance(container, (list, tuple)):
        return get_element(container, at)
    if type(container) is Optional:
        return find_in(container, at)
    _refuse("[]", container, at)


def find(container: Value, at: Value) -> Optional:
    """`container[?at]` and `container.?at`: an optional, none where nothing is there."""
    if type(container) is dict:
        return find_key(container, at)
    if isinstance(container, (list, tuple)):
        position = _position(at)
        return Optional(container[position]) if 0 <= position < len(container) else NONE
    if type(container) is Optional:
        return find_in(container, at)
    _refuse("[?]", container, at)


def find_key(container: _Map, key: Value) -> Optional:
    """`container[?key]` of a map."""
    try:
        return Optional(container[key_of(key)])
    except (KeyError, TypeError):
        return NONE


def find_in(container: Optional, at: Value) -> Optional:
    """Selection or index through an optional."""
    return NONE if container is NONE else find(container.value, at)


def select(container: Value, key: str) -> Value:
    """`container.key` for a map, or an optional of one (whose result is an optional)."""
    if type(container) is dict:
        return get_key(container, key)
    if type(container) is Optional:
        return find_select(container, key)
    raise NoSuchKey(f"no such key: {type_name(container)} has no fields, so no `{key[:_SHOWN]}`")


def find_select(container: Value, key: str) -> Optional:
    """`container.?key`."""
    if type(container) is dict:
        return find_key(container, key)
    if type(container) is Optional:
        return NONE if container is NONE else find_select(container.value, key)
    raise NoSuchKey(f"no such key: {type_name(container)} has no fields, so no `{key[:_SHOWN]}`")


def has_key(container: Value, key: str) -> bool:
    """`has(container.key)`."""
    if type(container) is dict:
        return key in container
    if type(container) is Optional:
        return container is not NONE and has_key(container.value, key)
    raise NoSuchKey(f"no such key: {type_name(container)} has no fields, so no `{key[:_SHOWN]}`")


def find_fact(record: "Optional | _Map", path: str) -> Optional:
    """A fact of a record, or of an optional one, as an optional."""
    if type(record) is Optional:
        if record is NONE:
            return NONE
        record = record.value  # type: ignore[assignment]
    return Optional(record[path]) if path in record else NONE  # type: ignore[index,operator]


def has_fact(record: "Optional | _Map", paths: tuple[str, ...]) -> bool:
    """Whether any of the paths is present in an optional record."""
    if type(record) is Optional:
        if record is NONE:
            return False
        record = record.value  # type: ignore[assignment]
    return any(path in record for path in paths)  # type: ignore[operator]


# Literals


def make_map(*entries: tuple[Value, Value]) -> _Map:
    """A map literal. Raises InvalidArgument for a repeated key, NoSuchOverload for a key's type."""
    result: _Map = {}
    for key, value in entries:
        put(result, key, value)
    return result


def put(result: _Map, key: Value, value: Value) -> None:
    """Add an entry to a map that is being made; errors as `make_map`."""
    if type(key) not in _KEYS:
        raise NoSuchOverload(f"{type_name(key)} cannot be the key of a map")
    held = key_of(key)
    if held in result:
        raise InvalidArgument(f"the key {str(key)[:_SHOWN]} stands twice in a map")
    result[held] = value


_KEYS = frozenset((str, int, UInt, bool))


def make_map_with_optionals(entries: Iterable[tuple[Value, Value]], optional: frozenset[int]) -> _Map:
    """A map literal whose entries at the positions `optional` hold optionals, left out when none."""
    result: _Map = {}
    for at, (key, value) in enumerate(entries):
        if at not in optional:
            put(result, key, value)
        elif type(value) is not Optional:
            raise NoSuchOverload(f"an entry with a question mark holds an optional, not {type_name(value)}")
        elif value is not NONE:
            put(result, key, value.value)
    return result


def spread(value: Value) -> tuple[Value, ...]:
    """The elements that `[?value]` adds to a list."""
    if type(value) is not Optional:
        raise NoSuchOverload(f"an element with a question mark is an optional, not {type_name(value)}")
    return () if value is NONE else (value.value,)


# Comprehensions


def iterate(container: Value) -> _List:
    """What one iteration variable walks: elements, or a map's keys in order."""
    if isinstance(container, (list, tuple)):
        return container
    if type(container) is dict:
        return sorted_keys(container)
    _refuse("a macro", container)


def sorted_keys(container: _Map) -> list[Value]:
    """The keys of a map as CEL values, in a stable order."""
    keys = [key_value(key) for key in container]
    keys.sort(key=key_order)
    return keys


def iterate_pairs(container: Value) -> list[tuple[Value, Value]]:
    """What two iteration variables walk: index and element, or key and value in order of keys."""
    if isinstance(container, (list, tuple)):
        return list(enumerate(container))
    if type(container) is dict:
        return map_pairs(container)
    _refuse("a macro", container)


def map_pairs(container: _Map) -> list[tuple[Value, Value]]:
    """Keys and values of a map, in a stable order of keys."""
    return [(key, container[key_of(key)]) for key in sorted_keys(container)]


def merge(result: _Map, entries: Value) -> None:
    """Add what one step of `transformMapEntry` made. Raises InvalidArgument for a repeated key."""
    if type(entries) is not dict:
        _refuse("transformMapEntry", entries)
    for key, value in entries.items():
        if key in result:
            raise InvalidArgument(f"the key {str(key_value(key))[:_SHOWN]} stands twice in a map")
        result[key] = value


def pick_first(error: EvaluationError | None, found: EvaluationError) -> EvaluationError:
    """Of several errors the left-most, so that messages stay the same."""
    return found if error is None else error


def as_optional(value: Value) -> Optional:
    """The result of optFlatMap's body. Raises NoSuchOverload unless it is an optional."""
    if type(value) is Optional:
        return value
    _refuse("optFlatMap", value)
