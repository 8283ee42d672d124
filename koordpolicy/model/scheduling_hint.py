"""What a pod's scheduling hint says to plugins."""

from collections.abc import Mapping
from typing import Final

from koordpolicy.model.protocol import DEPRECATED_SCHEDULING_HINT, SCHEDULING_HINT
from koordpolicy.model.reading import embedded_object, mapping

KEYS: Final = frozenset({SCHEDULING_HINT, DEPRECATED_SCHEDULING_HINT})
"""The annotations in which it stands; the older one counts where the other is absent or empty."""

NUMA: Final = "NodeNUMAResource"
DEVICES: Final = "DeviceShare"


def hinted_plugins(annotations: Mapping[str, str]) -> frozenset[str]:
    """The plugins to which a pod's hint says something; none without a hint. Raises ObjectError."""
    if not annotations or KEYS.isdisjoint(annotations):
        return frozenset()
    key = SCHEDULING_HINT if annotations.get(SCHEDULING_HINT) else DEPRECATED_SCHEDULING_HINT
    source = annotations.get(key)
    return frozenset(mapping(embedded_object(source, key), "extensions", key)) if source else frozenset()
