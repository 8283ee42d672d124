"""Careful access to JSON objects from outside: the wrong shape gives an error that names the place.

Kubernetes objects arrive as nested dicts. Absent and null mean the same (the field is unset); a value
of the wrong type is an `ObjectError` with the path, never a traceback from deep inside. Texts are those that
have a form in UTF-8: a lone surrogate, which JSON can escape, makes an object unreadable.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from koordpolicy.model.protocol import DEPRECATED_RESOURCES
from koordpolicy.model.quantity import INT64_MAX, INT64_MIN, QuantityError, amount

_TYPE_NAMES = MappingProxyType(
    {
        dict: "a mapping",
        list: "a list",
        str: "text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
    }
)

Json = Mapping[str, object]
"""A JSON object as read."""

Amounts = Mapping[str, int]
"""Resource name → integer amount: cpu in millicores, everything else in whole units."""

NOTHING: Mapping[str, int] = MappingProxyType({})
NO_TEXT: Mapping[str, str] = MappingProxyType({})

MOST_WEIGHT = 100
"""The weight of a wish is from 1 to this, so that the sum over all pods and wishes of a cluster fits 64 bits."""

_JSON_LIMIT = 1 << 20
_DIGITS = 19
"""Digits of the longest whole number of 64 bits."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a character as JSON escapes it, paired or not."""


class ObjectError(ValueError):
    """An object (or annotation) that has not the shape its kind promises."""


def mapping(parent: Json, key: str, at: str = "") -> Json:
    """The object under a key; empty when unset."""
    value = parent.get(key)
    # Asking for the class first spares nearly all objects the dearer question.
    if type(value) is dict:
        return value
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(at, key, "a mapping", value)
    return value


def optional_mapping(parent: Json, key: str, at: str = "") -> Json | None:
    """The object under a key; None when unset, so that `{}` can be told from nothing."""
    return None if parent.get(key) is None else mapping(parent, key, at)


def objects(parent: Json, key: str, at: str = "") -> Iterable[Json]:
    """The objects of the list under a key, in order. Each is looked at when its turn comes."""
    found = sequence(parent, key, at)
    return _objects(found, key, at) if found else ()


def _objects(found: Sequence[object], key: str, at: str) -> Iterator[Json]:
    for index, item in enumerate(found):
        if type(item) is not dict and not isinstance(item, Mapping):
            raise _wrong(at, f"{key}[{index}]", "a mapping", item)
        yield item


def sequence(parent: Json, key: str, at: str = "") -> Sequence[object]:
    """The list under a key; empty when unset."""
    value = parent.get(key)
    if value is None:
        return ()
    if type(value) is not list and not isinstance(value, (list, tuple)):
        raise _wrong(at, key, "a list", value)
    return value


def text(parent: Json, key: str, at: str = "") -> str:
    """The text under a key; empty when unset."""
    value = parent.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(at, key, "text", value)
    if not value.isascii():
        _check_text(value, at, key)
    return value


def texts(parent: Json, key: str, at: str = "") -> Mapping[str, str]:
    """The mapping from text to text under a key, such as labels; empty when unset."""
    value = mapping(parent, key, at)
    for name, item in value.items():
        if type(item) is not str and not isinstance(item, str):
            raise _wrong(at, f"{key}[{name}]", "text", item)
        if type(name) is not str:
            raise _wrong(at, f"{key}[{name}]", "text as the key", name)
        if not (name.isascii() and item.isascii()):
            _check_text(name, at, key)
            _check_text(item, at, f"{key}[{name}]")
    return value  # type: ignore[return-value]  # just checked


def text_list(parent: Json, key: str, at: str = "") -> list[str]:
    """The texts of the list under a key, in order; empty when unset."""
    found = []
    for index, item in enumerate(sequence(parent, key, at)):
        place = f"{key}[{index}]"
        if not isinstance(item, str):
            raise _wrong(at, place, "text", item)
        if not item.isascii():
            _check_text(item, at, place)
        found.append(item)
    return found


def integer(parent: Json, key: str, at: str = "") -> int | None:
    """The whole number of 64 bits under a key; None when unset."""
    value = parent.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(at, key, "a whole number", value)
    if not INT64_MIN <= value <= INT64_MAX:
        raise ObjectError(f"{_place(at, key)}: a whole number beyond 64 bits")
    return value


def weight(parent: Json, at: str = "") -> int:
    """The weight of a wish, which has to have one."""
    value = integer(parent, "weight", at) or 0
    if not 1 <= value <= MOST_WEIGHT:
        raise ObjectError(f"{_place(at, 'weight')}: a weight is from 1 to {MOST_WEIGHT}, found {value}")
    return value


def flag(parent: Json, key: str, at: str = "") -> bool:
    """The truth value under a key; false when unset."""
    value = parent.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _wrong(at, key, "true or false", value)
    return value


def amounts(parent: Json, key: str, at: str = "") -> Amounts:
    """The resource list under a key as integer amounts, deprecated names read as the current ones."""
    resources = mapping(parent, key, at)
    return read_amounts(resources, _place(at, key)) if resources else {}


def read_amounts(resources: Json, at: str = "") -> Amounts:
    """A resource list as integer amounts from 0. Raises ObjectError with the place of a bad quantity."""
    read: dict[str, int] = {}
    for written, value in resources.items():
        current = DEPRECATED_RESOURCES.get(written)
        name = written if current is None or current in resources else current
        try:
            number = read[name] = amount(name, value)
        except QuantityError as error:
            raise ObjectError(f"{_place(at, written)}: {error}") from error
        if number < 0:
            raise ObjectError(f"{_place(at, written)}: an amount cannot be below 0")
        if not name.isascii():
            _check_text(name, at, "a resource's name")
    return read


def embedded_object(source: str, at: str) -> Json:
    """The JSON object written in an annotation. Raises ObjectError when it is none."""
    value = embedded(source, at)
    if not isinstance(value, Mapping):
        raise ObjectError(f"{at}: expected a JSON object, found {_shown(value)}")
    return value


def embedded(source: str, at: str) -> object:
    """The JSON value written in an annotation. Raises ObjectError for broken or oversized text."""
    if len(source) > _JSON_LIMIT:
        raise ObjectError(f"{at}: more than {_JSON_LIMIT} characters of JSON")
    try:
        return parse_json(source)
    except ValueError as error:
        raise ObjectError(f"{at}: not valid JSON ({error})") from error


def parse_json(source: str) -> Any:
    """A JSON value from outside, with numbers and texts as elsewhere in objects. Raises ValueError for all else."""
    try:
        value = json.loads(source, parse_constant=_refuse_constant, parse_int=_whole, parse_float=_double)
        if _SURROGATE.search(source):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def _refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def _whole(digits: str) -> int:
    """A whole number that other numbers can be computed from without a thought of its size."""
    if len(digits) > _DIGITS + digits.startswith("-"):
        raise ValueError(f"a whole number of more than {_DIGITS} digits")
    return int(digits)


def _double(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number beyond the range of a double")
    return number


def _check_text(value: str, at: str, key: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ObjectError(
            f"{_place(at, key)}: half a character at {error.start}, which no text has"
        ) from None


def _wrong(at: str, key: str, expected: str, found: object) -> ObjectError:
    return ObjectError(f"{_place(at, key)}: expected {expected}, found {_shown(found)}")


def _place(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _shown(value: object) -> str:
    return _TYPE_NAMES.get(type(value), type(value).__name__)
