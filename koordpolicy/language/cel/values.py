"""Values at run time.

| CEL | Python |
|---|---|
| int, bool, double, string, bytes, null | int, bool, float, str, bytes, None |
| uint | `UInt`, an int of its own class |
| list | list (tuples are accepted) |
| map | dict; a bool key is held as `BoolKey`, because Python's `True == 1` |
| timestamp, duration | `Timestamp`, `Duration`: whole nanoseconds |
| type, optional | `TypeValue`, `Optional` |
| net.IP, net.CIDR | `IP`, `CIDR` |
| kubernetes.Quantity, kubernetes.URL | `Quantity`, `URL` |

Python's `1 == 1.0`, with equal hashes, is what CEL wants of map keys. Equality of anything but two
scalars of one class goes through `values_equality`.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1

Value: TypeAlias = object
"""Any run-time value; the table above says which classes occur."""


class UInt(int):
    """An unsigned integer, 0 to 2**64 - 1. Arithmetic gives plain ints: wrap results again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class BoolKey:
    """`true` or `false` as a key of a map. There are two, `TRUE_KEY` and `FALSE_KEY`."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"BoolKey({self.value})"

    def __reduce__(self) -> str:
        return "TRUE_KEY" if self.value else "FALSE_KEY"


TRUE_KEY = BoolKey(True)
FALSE_KEY = BoolKey(False)


def key_of(value: Value) -> object:
    """The form in which a CEL value stands as a dict key."""
    if value is True:
        return TRUE_KEY
    if value is False:
        return FALSE_KEY
    return value


def key_value(key: object) -> Value:
    """The CEL value of a dict key; the inverse of `key_of`."""
    return key.value if type(key) is BoolKey else key


class Duration:
    """A stretch of time in nanoseconds, within int64."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return type(other) is Duration and other.ns == self.ns

    def __lt__(self, other: "Duration") -> bool:
        return self.ns < other.ns

    def __hash__(self) -> int:
        return hash(("duration", self.ns))

    def __repr__(self) -> str:
        return f"Duration({self.ns})"


class Timestamp:
    """A point in time, nanoseconds since 1970-01-01T00:00:00Z, years 1 to 9999."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return type(other) is Timestamp and other.ns == self.ns

    def __lt__(self, other: "Timestamp") -> bool:
        return self.ns < other.ns

    def __hash__(self) -> int:
        return hash(("timestamp", self.ns))

    def __repr__(self) -> str:
        return f"Timestamp({self.ns})"


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: `int`, `type(x)`. Parameters of lists and maps do not show."""

    name: str


class Optional:
    """`optional.of(value)`, or `NONE`, the only instance without a value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "NONE" if self is NONE else f"Optional({self.value!r})"

    def __reduce__(self) -> "str | tuple[type[Optional], tuple[Value]]":
        return "NONE" if self is NONE else (Optional, (self.value,))


NONE = Optional(None)


@dataclass(frozen=True, slots=True)
class IP:
    """An IP address without zone."""

    address: IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class CIDR:
    """An IP address (host bits kept) with the length of its network prefix."""

    address: IPv4Address | IPv6Address
    length: int


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A Kubernetes quantity, exact to the nano: `nanos` = value x 10**9."""

    nanos: int


@dataclass(frozen=True, slots=True)
class URL:
    """A URL taken apart; `query` is the raw text after the question mark."""

    text: str
    scheme: str
    host: str
    path: str
    query: str


_TYPE_NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    tuple: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
    IP: "net.IP",
    CIDR: "net.CIDR",
    Quantity: "kubernetes.Quantity",
    URL: "kubernetes.URL",
}


def type_name(value: Value) -> str:
    """CEL's name of the value's type. Raises TypeError for an object that is no CEL value."""
    name = _TYPE_NAMES.get(type(value))
    if name is None:
        raise TypeError(f"{type(value).__name__} is not a CEL value")
    return name
