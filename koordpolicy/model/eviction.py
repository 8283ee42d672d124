"""What a pod says of its own eviction from a node that runs short."""

from collections.abc import Mapping

from koordpolicy.model.integers import parse_int_any_base
from koordpolicy.model.protocol import EVICTION_POLICY, EVICTION_PRIORITY, SUB_PRIORITY
from koordpolicy.model.reading import ObjectError, embedded


def eviction_reasons(annotations: Mapping[str, str]) -> tuple[str, ...] | None:
    """For which reasons the pod may go, as Koordinator names them; None for any. Unreadable, for none."""
    source = annotations.get(EVICTION_POLICY)
    if source is None:
        return None
    try:
        listed = embedded(source, EVICTION_POLICY)
    except ObjectError:
        return ()
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        return ()
    return tuple(listed)


def eviction_priority(annotations: Mapping[str, str]) -> int:
    """The lowest go first; 0 without a readable annotation."""
    return _number(annotations.get(EVICTION_PRIORITY)) or 0


def priority_label(labels: Mapping[str, str]) -> int | None:
    """The priority within a band, None without a readable label."""
    return _number(labels.get(SUB_PRIORITY))


def _number(source: str | None) -> int | None:
    if source is None:
        return None
    try:
        return parse_int_any_base(source, 32)
    except ValueError:
        return None
