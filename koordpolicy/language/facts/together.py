"""Facts that never come alone, and roots that come with others."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

_LOADS: Final = frozenset(
    ("resources.load", "resources.prodLoad", "resources.filterLoad", "resources.scoreLoad")
)
_SYSTEM: Final = frozenset(("usage.system.cpu", "usage.system.memory"))
_MEASURED: Final = frozenset(("resources.usage",)) | _LOADS | _SYSTEM
_CPU_INFO: Final = frozenset(f"cpuInfo.{name}" for name in ("model", "hyperThreading", "turbo"))
_WINDOW: Final = frozenset(("usageThresholds.aggregation", "usageThresholds.window"))

TOGETHER: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType(
    {
        ("node", "resources.usage"): _MEASURED,
        ("node", "usage.total.cpu"): _MEASURED,
        ("node", "usage.total.memory"): _MEASURED,
        **{("node", path): _SYSTEM | _LOADS for path in _SYSTEM},
        **{("node", path): _LOADS for path in _LOADS},
        **{("node", path): _CPU_INFO for path in _CPU_INFO},
        ("node", "usageThresholds.aggregated"): _WINDOW,
        **{("node", path): _WINDOW for path in _WINDOW},
    }
)
"""Record and path of a fact → the facts of the record that are there wherever it is."""

ROOTS_THERE: Mapping[tuple[str, str], Collection[str]] = MappingProxyType(
    {("operation", "UPDATE"): ("oldPod", "oldQuota"), ("operation", "DELETE"): ("oldPod", "oldQuota")}
)
"""Root and value → the roots that are there where it has the value."""

ALWAYS: frozenset[tuple[str, str]] = frozenset((("victim", "startedAt"),))
"""Facts of a root that are there although those of its record may be missing."""
