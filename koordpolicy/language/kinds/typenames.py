"""The names by which documents speak of types: `percent`, `list(string)`, `map(string, cpu)`."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from koordpolicy.language.cel.types import (
    AMOUNT,
    BANDWIDTH,
    BOOL,
    BYTES_VALUE,
    CIDR,
    CPU,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    MEMORY,
    NULL,
    PERCENT,
    QUANTITY,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    Type,
    list_of,
    map_of,
    record,
)
from koordpolicy.language.facts import FACTS

SIMPLE_TYPES: Mapping[str, Type] = MappingProxyType(
    {
        "bool": BOOL,
        "int": INT,
        "uint": UINT,
        "double": DOUBLE,
        "string": STRING,
        "cpu": CPU,
        "bytes": MEMORY,
        "percent": PERCENT,
        "bandwidth": BANDWIDTH,
        "amount": AMOUNT,
        "duration": DURATION,
        "timestamp": TIMESTAMP,
        "dyn": DYN,
        **{name: record(name) for name in FACTS.records},
    }
)
"""Every type that a name alone stands for."""

_NAME = "(?:" + "|".join(SIMPLE_TYPES) + ")"
TYPE_PATTERN = f"{_NAME}|list\\({_NAME}\\)|map\\(string, ?{_NAME}\\)"
"""What the name of a type may be (for the whole text)."""

_NESTED = re.compile(rf"(list|map)\((?:string, ?)?({_NAME})\)\Z")


def parse_type(name: str) -> Type | None:
    """The type of that name; `None` when there is none."""
    if name in SIMPLE_TYPES:
        return SIMPLE_TYPES[name]
    found = _NESTED.match(name)
    if not found or not re.fullmatch(TYPE_PATTERN, name):
        return None
    inner = SIMPLE_TYPES[found.group(2)]
    return list_of(inner) if found.group(1) == "list" else map_of(STRING, inner)


_NAMES: Mapping[Type, str] = MappingProxyType(
    {
        **{type: name for name, type in SIMPLE_TYPES.items()},
        BYTES_VALUE: "octets",  # CEL's strings of bytes; `bytes` is the unit of memory here
        IP: "ip",
        CIDR: "cidr",
        QUANTITY: "quantity",
        URL: "url",
        NULL: "null",
    }
)


def type_name(type: Type) -> str:
    """The name that documents and the manual use for a type."""
    if type in _NAMES:
        return _NAMES[type]
    if type.params:
        return f"{type.name}({', '.join(type_name(inner) for inner in type.params)})"
    return str(type)
