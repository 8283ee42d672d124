"""Selection, indexing, literals, and what comprehensions walk and make."""

from collections.abc import Iterable, Sequence

from koordpolicy.language.cel.errors import InvalidArgument, NoSuchKey, NoSuchOverload
from koordpolicy.language.cel.lower.runtime.faults import SHOWN, no_such_key, refused
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
from koordpolicy.language.cel.prices import KEY
from koordpolicy.language.cel.values import NONE, Optional, UInt, Value, key_of, key_value, type_name
from koordpolicy.language.cel.values_equality import ELEMENT, key_order

_Map = dict[object, Value]
_List = Sequence[Value]


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
    raise refused("[]", container, at)


def find(container: Value, at: Value) -> Optional:
    """`container[?at]` and `container.?at`: an optional, none where nothing is there."""
    if type(container) is dict:
        return find_key(container, at)
    if isinstance(container, (list, tuple)):
        position = _position(at)
        return Optional(container[position]) if 0 <= position < len(container) else NONE
    if type(container) is Optional:
        return find_in(container, at)
    raise refused("[?]", container, at)


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
    raise NoSuchKey(f"no such key: {type_name(container)} has no fields, so no `{key[:SHOWN]}`")


def find_select(container: Value, key: str) -> Optional:
    """`container.?key`."""
    if type(container) is dict:
        return find_key(container, key)
    if type(container) is Optional:
        return NONE if container is NONE else find_select(container.value, key)
    raise NoSuchKey(f"no such key: {type_name(container)} has no fields, so no `{key[:SHOWN]}`")


def has_key(container: Value, key: str) -> bool:
    """`has(container.key)`."""
    if type(container) is dict:
        return key in container
    if type(container) is Optional:
        return container is not NONE and has_key(container.value, key)
    raise NoSuchKey(f"no such key: {type_name(container)} has no fields, so no `{key[:SHOWN]}`")


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
        raise InvalidArgument(f"the key {str(key)[:SHOWN]} stands twice in a map")
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


def iterate(container: Value, meter: Meter = UNMETERED) -> _List:
    """What one iteration variable walks: elements, or a map's keys in order."""
    if isinstance(container, (list, tuple)):
        return container
    if type(container) is dict:
        return sorted_keys(container, meter)
    raise refused("a macro", container)


def sorted_keys(container: _Map, meter: Meter = UNMETERED) -> list[Value]:
    """The keys of a map as CEL values, in a stable order."""
    charge(meter, KEY * len(container))
    keys = [key_value(key) for key in container]
    keys.sort(key=key_order)
    return keys


def iterate_pairs(container: Value, meter: Meter = UNMETERED) -> list[tuple[Value, Value]]:
    """What two iteration variables walk: index and element, or key and value in order of keys."""
    if isinstance(container, (list, tuple)):
        return list(enumerate(container))
    if type(container) is dict:
        return map_pairs(container, meter)
    raise refused("a macro", container)


def map_pairs(container: _Map, meter: Meter = UNMETERED) -> list[tuple[Value, Value]]:
    """Keys and values of a map, in a stable order of keys."""
    return [(key, container[key_of(key)]) for key in sorted_keys(container, meter)]


def merge(result: _Map, entries: Value, meter: Meter = UNMETERED) -> None:
    """Add what one step of `transformMapEntry` made. Raises InvalidArgument for a repeated key."""
    if type(entries) is not dict:
        raise refused("transformMapEntry", entries)
    charge(meter, ELEMENT * len(entries))
    for key, value in entries.items():
        if key in result:
            raise InvalidArgument(f"the key {str(key_value(key))[:SHOWN]} stands twice in a map")
        result[key] = value


def as_optional(value: Value) -> Optional:
    """What must be an optional: the target of `or` and its like. Raises NoSuchOverload unless it is one."""
    if type(value) is Optional:
        return value
    raise NoSuchOverload(f"an optional is wanted, here it is {type_name(value)}")
