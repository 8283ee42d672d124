"""Values and types as JSON: in files of cases, and between here and the referees that are programs of their own.

What JSON has no form for is an object with one key that begins with a dollar sign; `tests/parts/go/cel/values.go`
is the other side.
"""

import base64
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.library.network import parse_cidr
from koordpolicy.language.cel.library.urls import parse_url
from koordpolicy.language.cel.types import Type
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
    UInt,
    key_of,
    key_value,
)

_TAGGED: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    UInt: lambda value: {"$uint": int(value)},
    float: lambda value: {"$double": repr(value)},
    bytes: lambda value: {"$bytes": base64.b64encode(value).decode()},
    Duration: lambda value: {"$duration": value.ns},
    Timestamp: lambda value: {"$timestamp": value.ns},
    Optional: lambda value: {"$optional": [] if value is NONE else [encoded(value.value)]},
    TypeValue: lambda value: {"$type": value.name},
    IP: lambda value: {"$ip": str(value.address)},
    CIDR: lambda value: {"$cidr": f"{value.address}/{value.length}"},
    Quantity: lambda value: {"$quantity": value.nanos},
    URL: lambda value: {"$url": value.text},
}


def encoded(value: Any) -> Any:
    """A run-time value as JSON data. Raises TypeError for one that has no form."""
    tagged = _TAGGED.get(type(value))
    if tagged is not None:
        return tagged(value)
    match value:
        case None | bool() | str() | int():
            return value
        case list() | tuple():
            return [encoded(item) for item in value]
        case dict():
            if all(type(key) is str and key[:1] != "$" for key in value):
                return {key: encoded(item) for key, item in value.items()}
            return {"$map": [[encoded(key_value(key)), encoded(item)] for key, item in value.items()]}
    raise TypeError(f"no form for {type(value).__name__}")


def _url(text: str) -> URL:
    try:
        return parse_url(text)
    except InvalidArgument:  # others take more
        return URL(text, "", "", "", "")


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "$duration": Duration,
    "$timestamp": Timestamp,
    "$uint": UInt,
    "$double": float,
    "$bytes": base64.b64decode,
    "$type": TypeValue,
    "$ip": lambda text: IP(ip_address(text)),
    "$cidr": parse_cidr,
    "$quantity": Quantity,
    "$url": _url,
    "$optional": lambda held: Optional(decoded(held[0])) if held else NONE,
    "$map": lambda entries: {key_of(decoded(key)): decoded(item) for key, item in entries},
}


def decoded(data: Any) -> Any:
    """The value of JSON data; the inverse of `encoded`."""
    if isinstance(data, list):
        return [decoded(item) for item in data]
    if isinstance(data, dict):
        if len(data) == 1:
            ((tag, held),) = data.items()
            if tag in _KINDS:
                return _KINDS[tag](held)
        return {key: decoded(item) for key, item in data.items()}
    return data


_PLAIN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "null_type": "null",
    "record": "dyn",
}
_MADE = {"list": "list", "map": "map", "optional_type": "optional"}


def type_form(type: Type) -> Any:
    """A type as JSON data, records as values of any type."""
    if type.name in _MADE:
        return [_MADE[type.name], *map(type_form, type.params)]
    return _PLAIN.get(type.name, type.name)
