"""Sort keys that policy gives, made comparable."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.cluster.prepared import PreparedDecision
from koordpolicy.graph.sortable import SortKey, sortable
from koordpolicy.language.cel.errors import CelError

LAST: Final[SortKey] = ((1,),)
"""Comes after all others."""


def sort_key(keys: PreparedDecision, records: Mapping[str, Any]) -> SortKey:
    """The place that a list of keys gives; what has none comes last."""
    try:
        found = keys.value(records)
    except CelError:
        return LAST
    return ((0,), *map(sortable, found or ()))
