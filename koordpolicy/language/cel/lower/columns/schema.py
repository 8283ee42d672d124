"""The columns of a table, derived from the declared facts."""

from typing import Final

from koordpolicy.language.cel.lower.columns.held import instant
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    kind_of,
)
from koordpolicy.language.cel.types import Type
from koordpolicy.language.facts import FactTable
from koordpolicy.model.table.kinds import (
    ELEMENT,
    FactKind,
    ListFact,
    MapFact,
    OpaqueFact,
    ScalarFact,
    Schema,
    Storage,
)

_SCALARS = {
    INT: ScalarFact(Storage.INT),
    DOUBLE: ScalarFact(Storage.DOUBLE),
    BOOL: ScalarFact(Storage.BOOL),
    STRING: ScalarFact(Storage.STRING),
    DURATION: ScalarFact(Storage.INT, instant),
    TIMESTAMP: ScalarFact(Storage.INT, instant),
}


DEPTH: Final = 2
"""Lists within lists have columns up to so many levels: the containers of the pods of a node."""


def table_schema(facts: FactTable, record: str) -> Schema:
    """How each fact of a record is held in columns. Raises KeyError for an unknown record."""
    return _schema(facts, record, DEPTH)


def _schema(facts: FactTable, name: str, depth: int) -> Schema:
    return {fact.path: _kind(facts, fact.type, depth) for fact in facts.records[name].facts}


def _kind(facts: FactTable, type: Type, depth: int) -> FactKind:
    kind = kind_of(type)
    if kind is not None:
        return _SCALARS[kind]
    if type.name == "map" and type.params[0].name == "string":
        values = kind_of(type.params[1])
        return OpaqueFact() if values is None else MapFact(_SCALARS[values])
    if type.name == "list" and depth > 0:
        element = type.params[0]
        if element.record is not None:
            return ListFact(_schema(facts, element.record, depth - 1))
        values = kind_of(element)
        if values is not None:
            return ListFact({ELEMENT: _SCALARS[values]})
    return OpaqueFact()
