"""Values of sort keys, made comparable whatever rules give."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.language.cel.values import Duration, Timestamp

SortKey = tuple[Any, ...]

_PLAIN: Final = MappingProxyType({int: "number", float: "number", bool: "bool", str: "str"})
"""Classes whose values compare as they are, with what they are called."""


def sort_key_of(values: Iterable[Any]) -> SortKey:
    """A key that compares with any other made so."""
    return tuple(map(sortable, values))


def sortable(value: Any) -> tuple[str, Any]:
    """A value that compares with any other: first by its class, then by itself."""
    name = _PLAIN.get(type(value))
    if name is not None:
        return name, value
    if type(value) in (Timestamp, Duration):
        return type(value).__name__, value.ns
    if isinstance(value, int):  # an unsigned one
        return "number", value
    return type(value).__name__, str(value)
