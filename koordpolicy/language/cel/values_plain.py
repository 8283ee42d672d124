"""From run-time values to plain data (what JSON and YAML hold)."""

import base64
import math

from koordpolicy.language.cel.values import (
    CIDR,
    IP,
    NONE,
    URL,
    Duration,
    Optional,
    Quantity,
    Timestamp,
    TypeValue,
    Value,
    key_value,
)
from koordpolicy.language.cel.values_time import format_duration, format_timestamp


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
