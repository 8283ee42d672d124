"""Sort keys that policy gives, made comparable."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.cluster.prepared import PreparedDecision
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration, Timestamp

SortKey = tuple[Any, ...]

LAST: Final[SortKey] = ((1,),)
"""Comes after all others."""


def sort_key(keys: PreparedDecision, records: Mapping[str, Any]) -> SortKey:
    """The place that a list of keys gives; what has none comes last."""
    try:
        found = keys.value(records)
    except CelError:
        return LAST
    return ((0,), *map(_sortable, found or ()))


_PLAIN: Final = MappingProxyType({int: "number", float: "number", bool: "bool", str: "str"})
"""Classes whose values compare as they are, with what they are called."""


def _sortable(value: Any) -> tuple[str, Any]:
    """A key that compares with any other: first by its class, then by its value."""
    name = _PLAIN.get(type(value))
    if name is not None:
        return name, value
    if type(value) in (Timestamp, Duration):
        return type(value).__name__, value.ns
    if isinstance(value, int):  # an unsigned one
        return "number", value
    return type(value).__name__, str(value)
