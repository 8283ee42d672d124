"""Sort keys that policy gives, made comparable."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.scheduler.asked import Asked

SortKey = tuple[Any, ...]


def sort_key(keys: Asked, records: Mapping[str, Any]) -> SortKey:
    """The place that a list of keys gives; what has none comes last."""
    try:
        found = keys.value(records)
    except CelError:
        return ((1,),)
    return ((0,), *(_sortable(key) for key in found or ()))


def _sortable(value: Any) -> tuple[str, Any]:
    """A key that compares with any other: first by its class, then by its value."""
    if isinstance(value, Timestamp | Duration):
        return type(value).__name__, value.ns
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        return "number", value
    return type(value).__name__, value if isinstance(value, str) else str(value)
