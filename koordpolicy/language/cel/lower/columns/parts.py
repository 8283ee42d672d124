"""The parts that an emitter makes besides statements: fallbacks, what row programs do, what is kept."""

from dataclasses import dataclass

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    EntrySpace,
    ListVec,
    LiteralVec,
    MapVec,
    OptionalVec,
    PickedVec,
    RecordVec,
    Symbol,
    Vec,
)
from koordpolicy.language.cel.lower.columns.writer import Line

ROWS = EntrySpace("n")
ZEROS = {INT: "0", DURATION: "0", TIMESTAMP: "0", DOUBLE: "0.0", BOOL: "False", STRING: "''"}


@dataclass(frozen=True, slots=True)
class Fallback:
    """A subexpression without column form: why, and where it stands in the source."""

    reason: str
    start: int
    end: int


@dataclass(slots=True)
class RowPart:
    """A subexpression that row programs evaluate: `names` are its parameters in order."""

    node: ir.Node
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A part that only the table and roots of one value decide: the facts it reads, the variables of those roots (each
    after a comma), the body of its function, what that returns (values, errors, bounds), and whether it reads lists.
    """

    node: ir.Node
    facts: tuple[str, ...]
    given: str
    lines: list[Line]
    results: tuple[str, str, str, str]
    whole: bool


WORK = (ir.Call, ir.And, ir.Or, ir.Cond, ir.Holds, ir.OrElse, ir.Comprehension)
"""Nodes that take more than reading a column."""

OPERATION = 60
"""Units of one operation on arrays, beside its entries."""

ENTRIES = 8
"""Entries of an array that one operation treats for a unit."""

WORTH_KEEPING = 2
_EFFORTS = {
    "hasValue(optional_type(T))": 0, "!_(bool)": 0, "percent_of(int,double)": 5,
    "scale(int,double)": 4, "divide(int,double)": 5, "quotient(int,int)": 3, "_/_(int,int)": 4, "_%_(int,int)": 6,
}  # fmt: skip


SAME = frozenset(
    (
        "int(int)", "double(double)", "percent(double)", "bool(bool)", "string(string)", "number(int)",
        "number(double)", "amount(int)", "millicores(int)", "bytesOf(int)", "duration(google.protobuf.Duration)",
        "timestamp(google.protobuf.Timestamp)", "dyn(dyn)", "dyn(A)",
    )
)  # fmt: skip
"""Overloads that give their argument back."""


def own_effort(node: ir.Node) -> int:
    """About how many passes over the rows the node itself takes."""
    match node:
        case ir.Comprehension():
            return 50
        case ir.Cond():
            return 2
        case ir.And() | ir.Or() | ir.Holds():
            return 1
        case ir.Call(overload=id):
            return 0 if id in SAME else _EFFORTS.get(id, 1)
    return 0


def space_of(symbol: Symbol) -> EntrySpace | None:
    """Where a symbol's entries lie; None for one value."""
    match symbol:
        case Vec() | RecordVec():
            return symbol.space
        case OptionalVec():
            return symbol.value.space
        case MapVec():
            return symbol.record.space
        case ListVec() | LiteralVec() | PickedVec():
            return symbol.space
    return None
