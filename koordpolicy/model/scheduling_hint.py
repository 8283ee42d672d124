"""What a pod's scheduling hint says to plugins."""

from collections.abc import Mapping
from typing import Final

from koordpolicy.model.protocol import DEPRECATED_SCHEDULING_HINT, SCHEDULING_HINT
from koordpolicy.model.reading import Json, ObjectError, embedded_object, mapping, text_list

KEYS: Final = frozenset({SCHEDULING_HINT, DEPRECATED_SCHEDULING_HINT})
"""The annotations in which it stands; the older one counts where the other is absent or empty."""

NUMA: Final = "NodeNUMAResource"
DEVICES: Final = "DeviceShare"


def hinted_plugins(annotations: Mapping[str, str]) -> frozenset[str]:
    """The plugins to which a pod's hint says something; none without a hint. Raises ObjectError."""
    found = _hint(annotations)
    return frozenset() if found is None else frozenset(mapping(found[0], "extensions", found[1]))


def hinted_nodes(annotations: Mapping[str, str]) -> frozenset[str]:
    """The only nodes that a pod's hint leaves; none for all. Raises ObjectError."""
    found = _hint(annotations)
    return frozenset() if found is None else frozenset(text_list(found[0], "nodeNames", found[1]))


def preferred_nodes(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes that a pod's hint prefers, the first most, each once, of those that it leaves. Raises ObjectError."""
    found = _hint(annotations)
    if found is None:
        return ()
    preferred, only = text_list(found[0], "preferredNodeNames", found[1]), hinted_nodes(annotations)
    return tuple(dict.fromkeys(one for one in preferred if not only or one in only))


def not_followed(annotations: Mapping[str, str]) -> bool:
    """Whether a pod's hint says something that nothing here follows, or cannot be read."""
    try:
        return not hinted_plugins(annotations) <= {NUMA, DEVICES}
    except ObjectError:
        return True


def _hint(annotations: Mapping[str, str]) -> tuple[Json, str] | None:
    """The hint of a pod, and where it stands. Raises ObjectError."""
    if not annotations or KEYS.isdisjoint(annotations):
        return None
    key = SCHEDULING_HINT if annotations.get(SCHEDULING_HINT) else DEPRECATED_SCHEDULING_HINT
    source = annotations.get(key)
    return (embedded_object(source, key), key) if source else None
