"""Between run-time values and plain data (what JSON and YAML hold)."""

import base64
import math
from collections.abc import Mapping

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.values import (
    CIDR,
    INT_MAX,
    INT_MIN,
    IP,
    NONE,
    URL,
    Duration,
    Optional,
    Quantity,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    key_value,
)
from koordpolicy.language.cel.values_time import format_duration, format_timestamp

_DEPTH_LIMIT = 64


def from_plain(data: object, depth: int = 0) -> Value:
    """The run-time value of JSON data: objects become maps, numbers int or double.

    Raises InvalidArgument for an integer outside int64, a key that is not text, nesting deeper
    than 64, or an object that JSON doesn't know.
    """
    if depth > _DEPTH_LIMIT:
        raise InvalidArgument(f"data nested deeper than {_DEPTH_LIMIT} levels")
    if data is None or isinstance(data, (bool, str, float, bytes, UInt)):
        return data
    if isinstance(data, int):
        if not INT_MIN <= data <= INT_MAX:
            raise InvalidArgument(f"{data} does not fit int64")
        return data
    if isinstance(data, (list, tuple)):
        return [from_plain(element, depth + 1) for element in data]
    if isinstance(data, Mapping):
        for key in data:
            if not isinstance(key, str):
                raise InvalidArgument(f"{key!r} as a key is no text")
        return {key: from_plain(value, depth + 1) for key, value in data.items()}
    raise InvalidArgument(f"{type(data).__name__} is no plain data")


def to_plain(value: Value) -> object:
    """The JSON form of a run-time value.

    bytes become base64, times their text, a type its name, an optional its value or None, a
    double that is not finite its name as text; keys become text.
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case list() | tuple():
            return [to_plain(element) for element in value]
        case dict():
            return {_key_text(key): to_plain(element) for key, element in value.items()}
        case Duration():
            return format_duration(value)
        case Timestamp():
            return format_timestamp(value)
        case TypeValue():
            return value.name
        case Optional():
            return None if value is NONE else to_plain(value.value)
        case IP():
            return str(value.address)
        case CIDR():
            return f"{value.address}/{value.length}"
        case Quantity():
            return _number(value.nanos)
        case URL():
            return value.text
    raise TypeError(f"{type(value).__name__} is not a CEL value")


def _number(nanos: int) -> float:
    """A quantity as a number of JSON: whole where it is, and where it is too large for a fraction to matter."""
    whole, part = divmod(nanos, 10**9)
    return whole if part == 0 or abs(whole) >= 2**53 else nanos / 10**9


def _key_text(key: object) -> str:
    value = key_value(key)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, int) else str(value)
