"""What generated code holds at a point: names of its variables, and what is known of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import INT_MAX, INT_MIN

INT, DOUBLE, BOOL, STRING = "int", "double", "bool", "string"
DURATION, TIMESTAMP = "duration", "timestamp"
WHOLE = "whole"
"""Numbers of kind int that are held as doubles for now: none beyond 2**53."""
COUNTED = frozenset((INT, DURATION, TIMESTAMP))
"""Kinds held as int64."""
NUMBERS = COUNTED | {DOUBLE, WHOLE}
"""Kinds that have bounds."""

_KINDS = {
    "int": INT,
    "double": DOUBLE,
    "bool": BOOL,
    "string": STRING,
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
}
DTYPES = {
    INT: "int64",
    DURATION: "int64",
    TIMESTAMP: "int64",
    DOUBLE: "float64",
    WHOLE: "float64",
    BOOL: "bool",
    STRING: "int32",
}
"""NumPy's name of the type that holds a kind."""

WIDEST = (str(INT_MIN), str(INT_MAX))


def kind_of(type: Type) -> str | None:
    """The kind of column that holds values of a type; None when no column does."""
    return _KINDS.get(type.name)


class NoColumnForm(Exception):
    """The node cannot be computed for all rows at once; `reason` is one phrase."""

    def __init__(self, node: ir.Node, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


@dataclass(frozen=True, slots=True, eq=False)
class EntrySpace:
    """What the entries of an array stand for: rows of the table, or elements of a list fact.

    `count` names the variable with the number of entries, and `number` tells spaces apart. A space of
    elements lies within another, its `parent`: `owners` names the variable with the entry of the parent
    that each element belongs to, `segments` that with the segments.
    """

    count: str
    number: int = 0
    parent: "EntrySpace | None" = None
    owners: str | None = None
    segments: str | None = None

    @property
    def depth(self) -> int:
        """How many lists lie between the rows and the entries."""
        return 0 if self.parent is None else 1 + self.parent.depth

    def within(self, other: "EntrySpace") -> bool:
        """Whether each entry belongs to one of the other space."""
        space: EntrySpace | None = self
        while space is not None and space is not other:
            space = space.parent
        return space is other


@dataclass(frozen=True, slots=True)
class Need:
    """The entries of a space whose value matters: `mask` names the variable."""

    mask: str
    space: EntrySpace


Bounds: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Vec:
    """Values of one kind.

    In a space, `values` names an array and `errors` (None: cannot fail) a variable that holds the mask
    of entries in error, or None when there are none. Without a space the value is one for all:
    `values` names a scalar, and `errors` a variable that is true when it failed (then the scalar is a
    zero). `bounds` gives texts of the least and greatest value. A `fresh` array belongs to the
    generated code alone. Strings that are `few` are those that the expression itself names, or made of
    such; a column may bring ever new ones. `column` names the table's column that the values are, as they stand.
    `unsigned` doubles have no -0.0 among them when their least value is not less than 0; a single one is more than 0;
    whole numbers held as doubles have none at all.
    """

    kind: str
    values: str
    space: EntrySpace | None = None
    errors: str | None = None
    bounds: "Callable[[], Bounds] | None" = None
    fresh: bool = False
    few: bool = False
    column: str | None = None
    unsigned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OptionalVec:
    """Optionals: `value.errors` marks failed entries, `none` names the mask of those without value
    (or None when all have one); without a space, `none` names a bool.
    """

    value: Vec
    none: str | None


@dataclass(frozen=True, slots=True, eq=False)
class RecordVec:
    """The row itself, or the element of a list of records. `store` names what has its columns."""

    space: EntrySpace
    store: str


@dataclass(frozen=True, slots=True, eq=False)
class MapVec:
    """A map fact of each entry of a record."""

    record: RecordVec
    path: str
    values: str | None


@dataclass(frozen=True, slots=True, eq=False)
class ThingVec:
    """A value of any other type that is one for all: a list, map, record or optional of the pod's.

    `values` and `errors` as in a `Vec` without space.
    """

    values: str
    errors: str | None
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class ListVec:
    """A list that each row has, as elements in a space.

    `element` is what an element is (a vector may also be one value a row, or for all). `chosen` names
    the mask of the elements that belong to the lists (or None: all), `errors` the mask of entries of
    `outer` without a list. A `whole` list is a fact as it stands, unfiltered.
    """

    space: EntrySpace
    element: "Symbol"
    chosen: str
    errors: str | None
    whole: bool

    @property
    def outer(self) -> EntrySpace:
        """The space whose entries have the lists."""
        assert self.space.parent is not None
        return self.space.parent


@dataclass(frozen=True, slots=True, eq=False)
class PickedVec:
    """Elements that each row keeps of a list that is one for all: `walked` names the elements, `masks` a
    list with the rows that keep each of them, `errors` a variable with the rows in error, or None.
    With `held` durations and points in time stand as nanoseconds in it already.
    """

    space: EntrySpace
    kind: str
    walked: str
    masks: str
    errors: str
    held: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LiteralVec:
    """A list of a few elements, each with one value a row: vectors of one kind, and for each the
    variable with the mask of the rows that have it (None: all). `errors` as in `ListVec`.
    """

    space: EntrySpace
    elements: "tuple[tuple[Vec, str | None], ...]"
    errors: str | None


Symbol: TypeAlias = Vec | OptionalVec | RecordVec | MapVec | ListVec | LiteralVec | PickedVec | ThingVec
