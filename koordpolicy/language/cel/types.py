"""Types of expressions, with the units of quantities."""

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a number counts. A number without a unit is dimensionless (counts, ratios, scores).

    The value under a unit is fixed: `cpu` int millicores, `bytes` int, `percent` double percent
    points (65.0 is 65 %), `bandwidth` int bits/s, `amount` int of a resource whose name is only
    known at run time (millicores for cpu, bytes for memory, else whole units).
    """

    CPU = "cpu"
    BYTES = "bytes"
    PERCENT = "percent"
    BANDWIDTH = "bandwidth"
    AMOUNT = "amount"


@dataclass(frozen=True, slots=True)
class Type:
    """A CEL type. `name` is CEL's own, or `record` for a declared structure, or `param`.

    `params` are the element types of list, map, optional and type. `unit` qualifies int and
    double only. `record` names a structure of `facts` (or a type parameter's letter).
    """

    name: str
    params: tuple["Type", ...] = ()
    unit: Unit | None = None
    record: str | None = None

    def __str__(self) -> str:
        if self.unit is not None:
            return self.unit.value
        if self.record is not None:
            return self.record
        if self.params:
            return f"{self.name}({', '.join(map(str, self.params))})"
        return self.name

    @property
    def is_number(self) -> bool:
        return self.name in ("int", "uint", "double")


DYN = Type("dyn")
NULL = Type("null_type")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES_VALUE = Type("bytes")
TIMESTAMP = Type("google.protobuf.Timestamp")
DURATION = Type("google.protobuf.Duration")
IP = Type("net.IP")
CIDR = Type("net.CIDR")
QUANTITY = Type("kubernetes.Quantity")
URL = Type("kubernetes.URL")
ERROR = Type("error")
"""Stands in where a subexpression was already reported; it silences everything above it."""

CPU = Type("int", unit=Unit.CPU)
MEMORY = Type("int", unit=Unit.BYTES)
PERCENT = Type("double", unit=Unit.PERCENT)
BANDWIDTH = Type("int", unit=Unit.BANDWIDTH)
AMOUNT = Type("int", unit=Unit.AMOUNT)


def list_of(element: Type) -> Type:
    """A list of one element type."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """A map; keys are int, uint, bool or string."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """A value or none."""
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    """The type of a type's value."""
    return Type("type", (value,))


def record(name: str) -> Type:
    """A structure declared in the facts, such as `node` or `pod`."""
    return Type("record", record=name)


def param(letter: str) -> Type:
    """A type parameter of a generic function, such as the T of list(T)."""
    return Type("param", record=letter)
