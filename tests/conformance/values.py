"""The one-key form in which conformance cases write values and types."""

import math

from koordpolicy.language.cel.types import (
    BOOL,
    BYTES_VALUE,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    param,
    type_of,
)
from koordpolicy.language.cel.values import (
    NONE,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    key_of,
    key_value,
)
from koordpolicy.language.cel.values_time import parse_duration, parse_timestamp

Json = dict[str, object]

_PRIMITIVES = {
    "BOOL": BOOL, "INT64": INT, "UINT64": UINT, "DOUBLE": DOUBLE, "STRING": STRING, "BYTES": BYTES_VALUE,
}  # fmt: skip


def read_value(data: Json) -> Value:
    """The run-time value of `{"int": "-3"}` and its like."""
    ((kind, held),) = data.items()
    match kind:
        case "null" | "bool" | "string":
            return held
        case "int":
            return int(str(held))
        case "uint":
            return UInt(str(held))
        case "double":
            return float(str(held))
        case "bytes":
            return bytes.fromhex(str(held))
        case "list":
            return [read_value(element) for element in held]  # type: ignore[attr-defined]
        case "map":
            return {key_of(read_value(key)): read_value(value) for key, value in held}  # type: ignore[attr-defined]
        case "type":
            return TypeValue(str(held))
        case "duration":
            return parse_duration(str(held))
        case "timestamp":
            return parse_timestamp(str(held))
    raise ValueError(f"unknown kind of value: {kind}")


def same(a: Value, b: Value) -> bool:
    """Whether two values are one: of the same type throughout, NaN equal to NaN, -0.0 unlike 0.0."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, Optional) and isinstance(b, Optional):
        return a is b if a is NONE or b is NONE else same(a.value, b.value)
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(_same_entry(key, value, b) for key, value in a.items())
    return a == b


def _same_entry(key: object, value: Value, other: dict[object, Value]) -> bool:
    twin = next((k for k in other if same(key_value(k), key_value(key))), None)
    return twin is not None and same(value, other[twin])


def read_type(data: Json) -> Type:
    """The type of `{"primitive": "INT64"}` and its like (the protobuf JSON form)."""
    ((kind, held),) = data.items()
    match kind:
        case "primitive":
            return _PRIMITIVES[str(held)]
        case "null":
            return NULL
        case "dyn":
            return DYN
        case "messageType":
            return Type(str(held))
        case "typeParam":
            return param(str(held))
        case "wellKnown":
            return {
                "DURATION": Type("google.protobuf.Duration"),
                "TIMESTAMP": Type("google.protobuf.Timestamp"),
            }[str(held)]
    assert isinstance(held, dict)
    match kind:
        case "listType":
            return list_of(read_type(held["elemType"]))
        case "mapType":
            return map_of(read_type(held["keyType"]), read_type(held["valueType"]))
        case "type":
            return type_of(read_type(held))
        case "abstractType":
            params = tuple(map(read_type, held.get("parameterTypes", [])))
            if held["name"] == "optional_type":
                return optional_of(*params)
            return Type(str(held["name"]), params)
    raise ValueError(f"unknown kind of type: {kind}")


def show(value: Value) -> str:
    """A value for a failure line."""
    if isinstance(value, (Duration, Timestamp)):
        return f"{type(value).__name__}({value.ns})"
    return repr(value)
