"""How types and units are spoken of in messages."""

from collections.abc import Mapping
from typing import Final

from koordpolicy.language.cel.types import Type, Unit

_UNITS = {
    Unit.CPU: "in millicores",
    Unit.BYTES: "in bytes",
    Unit.PERCENT: "a percentage",
    Unit.BANDWIDTH: "in bits per second",
    Unit.AMOUNT: "an amount of some resource",
}

_TYPES = {
    "null_type": "null",
    "bool": "a bool",
    "int": "an int",
    "uint": "a uint",
    "double": "a double",
    "string": "a string",
    "bytes": "bytes",
    "google.protobuf.Timestamp": "a timestamp",
    "google.protobuf.Duration": "a duration",
    "net.IP": "an IP address",
    "net.CIDR": "a CIDR",
    "kubernetes.Quantity": "a Kubernetes quantity",
    "kubernetes.URL": "a URL",
    "type": "a type",
    "dyn": "of unknown type",
    "param": "of unknown type",
}


_SHORT = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "kubernetes.Quantity": "quantity",
    "kubernetes.URL": "url",
    "optional_type": "optional",
    "null_type": "null",
    "param": "any",
    "dyn": "any",
}


def short(type: Type) -> str:
    """The type in a list of signatures: `list(cpu)`, `timestamp`."""
    if type.unit is not None or type.name == "record":
        return str(type)
    name = _SHORT.get(type.name, type.name)
    return f"{name}({', '.join(map(short, type.params))})" if type.params else name


def open_type(type: Type) -> bool:
    """Whether only run time can tell what a value is."""
    return type.name in ("dyn", "param")


def spoken(type: Type) -> str:
    """What a value of this type is: `in millicores`, `a string`, `a list of string`."""
    if type.unit is not None:
        return _UNITS[type.unit]
    if type.name == "record":
        return f"the record `{type.record}`"
    if type.name == "list" and open_type(type.params[0]):
        return "a list"
    if type.name == "map" and all(map(open_type, type.params)):
        return "a map"
    if type.name == "list":
        return f"a list of {short(type.params[0])}"
    if type.name == "map":
        return f"a map from {short(type.params[0])} to {short(type.params[1])}"
    if type.name == "optional_type":
        return f"an optional {short(type.params[0])}"
    return _TYPES.get(type.name, f"a {type.name}")


def wished(type: Type) -> str:
    """A value of this type, as something that is wanted: `a value in bytes`, `a percentage`."""
    words = spoken(type)
    return f"a value {words}" if words.startswith("in ") else words


def spoken_bare(type: Type) -> str:
    """As `spoken`, where the lack of a unit is the point."""
    return "a bare number" if type.is_number and type.unit is None else spoken(type)


def several(names: tuple[str, ...], last: str = "or", most: int = 8) -> str:
    """`a`, `b` or `c`; after `most` names the rest is only counted."""
    quoted = [f"`{name}`" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(quoted)} {last} {len(names) - most} more"
    return f" {last} ".join(part for part in (", ".join(quoted[:-1]), quoted[-1]) if part) if quoted else ""


_EMPTY_BY_UNIT: Final[Mapping[Unit, str]] = {
    Unit.CPU: "millicores(0)",
    Unit.BYTES: "bytesOf(0)",
    Unit.PERCENT: "percent(0)",
    Unit.AMOUNT: "amount(0)",
    Unit.BANDWIDTH: "bandwidth('0')",
}
_EMPTY_BY_TYPE: Final[Mapping[str, str]] = {
    "string": "''",
    "int": "0",
    "uint": "0u",
    "double": "0.0",
    "bool": "false",
    "list": "[]",
    "map": "{}",
    "google.protobuf.Duration": "duration('0s')",
}


def written_empty(type: Type) -> str | None:
    """How the empty value of a type is written, nothing of its unit: `''`, `percent(0)`; None for a type without one."""
    return _EMPTY_BY_UNIT[type.unit] if type.unit is not None else _EMPTY_BY_TYPE.get(type.name)
