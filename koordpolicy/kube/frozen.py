"""Objects that cannot be changed in place, so that they can be shared without being copied.

A stored object is a tree of `FrozenDict` and `FrozenList`. They are dicts and lists to every reader
(`isinstance`, `==`, `json.dumps`), only writing to them raises. Reading a thousand pods therefore copies
nothing, and a new version of an object shares every part that did not change with the old one.
"""

import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from koordpolicy.kube.errors import Rejected

MAX_DEPTH: Final = 128
"""How deeply lists and maps of one object may nest. Real objects stay below 40."""

_SCALARS: Final = frozenset({str, int, bool, type(None)})


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("objects of the cluster are shared and read-only: change a copy made by `thaw(object)`")


class FrozenDict(dict[str, Any]):
    """A dict that refuses to be changed. `copy`, `|` and `copy.deepcopy` give plain dicts."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (dict(self),))


class FrozenList(list[Any]):
    """A list that refuses to be changed. `copy`, slices, `+` and `copy.deepcopy` give plain lists."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[Any]:
        return [_thawed(item) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))


def freeze(value: Mapping[str, Any]) -> FrozenDict:
    """A read-only twin of a JSON object. Parts that are frozen already are shared, not copied.

    Raises Rejected, naming the place, for anything that is not JSON (other types, keys that are no
    text, infinite numbers) and for nesting deeper than MAX_DEPTH.
    """
    if type(value) is FrozenDict:
        return value
    try:
        frozen = _frozen(value if type(value) is dict else dict(value), MAX_DEPTH)
    except _NotJson as fault:
        raise Rejected(f"the object is not JSON: {_place(value, MAX_DEPTH)}: {fault}") from None
    assert type(frozen) is FrozenDict  # a dict went in
    return frozen


def is_json(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether a value is JSON as it stands, of plain or frozen parts: not needing `freeze`, nor refused by it."""
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                return False
            if type(item) not in _SCALARS and not (depth > 1 and is_json(item, depth - 1)):
                return False
        return True
    if kind is list:
        below = depth - 1
        return all(type(item) in _SCALARS or (below and is_json(item, below)) for item in value)
    return kind is FrozenDict or kind is FrozenList or (kind is float and math.isfinite(value))


def thaw(value: Mapping[str, Any]) -> dict[str, Any]:
    """A private copy, all of plain dicts and lists, that may be changed freely."""
    return {key: item if type(item) in _SCALARS else _thawed(item) for key, item in value.items()}


def replaced(value: Mapping[str, Any], path: tuple[str, ...], item: Any) -> FrozenDict:
    """A frozen copy of `value` in which `item` stands at `path`; maps on the way are made as needed."""
    changed = dict(value)
    key, rest = path[0], path[1:]
    if rest:
        below = changed.get(key)
        changed[key] = replaced(below if isinstance(below, Mapping) else {}, rest, item)
    else:
        changed[key] = item
    return freeze(changed)


class _NotJson(Exception):
    """What is wrong with one value; the place is found afterwards, so that the good case pays nothing."""


def _thawed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if type(item) in _SCALARS else _thawed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _SCALARS else _thawed(item) for item in value]
    if isinstance(value, Mapping):
        return _thawed(dict(value))
    return value


def _frozen(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is FrozenDict or kind is FrozenList or kind in _SCALARS:
        return value
    if depth == 0:
        raise _NotJson(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise _NotJson("keys must be text")
        below = depth - 1
        return FrozenDict(
            {key: item if type(item) in _SCALARS else _frozen(item, below) for key, item in value.items()}
        )
    if isinstance(value, (list, tuple)):
        below = depth - 1
        return FrozenList([item if type(item) in _SCALARS else _frozen(item, below) for item in value])
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _NotJson(f"{value} is not a JSON number")
        return value
    if isinstance(value, Mapping):
        return _frozen(dict(value), depth)
    for plain in (str, int):  # enums of text or numbers are stored as what they stand for
        if isinstance(value, plain):
            return plain(value)
    raise _NotJson(f"{kind.__name__} is not a JSON type")


def _place(value: Any, depth: int) -> str:
    """The path of the first fault, such as `.spec.containers[0]`."""
    if depth == 0 or not isinstance(value, (Mapping, list, tuple)):
        return "."
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in items:
        if isinstance(value, Mapping) and type(key) is not str:
            return "."
        try:
            _frozen(item, depth - 1)
        except _NotJson:
            step = f".{key}" if isinstance(value, Mapping) else f"[{key}]"
            below = _place(item, depth - 1)
            return step if below == "." else step + below
    return "."
