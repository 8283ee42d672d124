"""Which co-location strategy holds for a node: the document's, the node's annotation over it, its labels over both."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.algorithms.strategies import Expanded, expand, merge
from koordpolicy.model.protocol import (
    CPU_RECLAIM_RATIO,
    MEMORY_RECLAIM_RATIO,
    MID_STATIC_CPU_RESERVED_RATIO,
    MID_STATIC_MEMORY_RESERVED_RATIO,
)
from koordpolicy.model.slo_config import COLOCATION, LAYOUTS, ConfigDocument, Strategy

_RATIOS: Final[Mapping[str, str]] = MappingProxyType(
    {
        CPU_RECLAIM_RATIO: "cpuReclaimThresholdPercent",
        MEMORY_RECLAIM_RATIO: "memoryReclaimThresholdPercent",
        MID_STATIC_CPU_RESERVED_RATIO: "midStaticCPUReservedPercent",
        MID_STATIC_MEMORY_RESERVED_RATIO: "midStaticMemoryReservedPercent",
    }
)
"""Labels of nodes, and the percentages that they take the place of."""

_POSITIVE: Final = (
    "metricAggregateDurationSeconds",
    "metricReportIntervalSeconds",
    "degradeTimeMinutes",
    "updateTimeThresholdSeconds",
    "resourceDiffThreshold",
)
_NOT_NEGATIVE: Final = (
    "cpuReclaimThresholdPercent",
    "memoryReclaimThresholdPercent",
    "midStaticCPUReservedPercent",
    "midStaticMemoryReservedPercent",
    "batchCPUThresholdPercent",
    "batchMemoryThresholdPercent",
)
_SHARES: Final = ("midCPUThresholdPercent", "midMemoryThresholdPercent", "midUnallocatedPercent")


def is_valid(strategy: Strategy) -> bool:
    """Whether a merged strategy can be worked with. What is absent is no fault."""
    return (
        all(strategy.get(name, 1) > 0 for name in _POSITIVE)
        and all(strategy.get(name, 0) >= 0 for name in _NOT_NEGATIVE)
        and all(0 <= strategy.get(name, 0) <= 100 for name in _SHARES)
        and strategy.get("metricMemoryCollectPolicy") != ""
    )


def colocation(document: ConfigDocument | None, default: Strategy) -> Expanded | None:
    """The document merged; None where what it says for the cluster is invalid. An invalid entry is as the cluster."""
    expanded = expand(LAYOUTS[COLOCATION], document, default)
    if not is_valid(expanded.cluster):
        return None
    return Expanded(
        expanded.cluster,
        tuple(
            (selector, strategy if is_valid(strategy) else expanded.cluster)
            for selector, strategy in expanded.entries
        ),
    )


def with_node(strategy: Strategy, annotation: Strategy, labels: Mapping[str, str]) -> dict[str, Any]:
    """A strategy with what a node's annotation (as read; empty for none) and its labels say."""
    result = merge(LAYOUTS[COLOCATION].strategy, strategy, annotation)
    for label, name in _RATIOS.items():
        percent = ratio_percent(labels.get(label))
        if percent is not None:
            result[name] = percent
    return result


def ratio_percent(text: str | None) -> int | None:
    """The percentage of a ratio such as `0.6`, truncated as floats are; None for none, a negative or malformed one."""
    if text is None or text != text.strip() or "_" in text:
        return None
    try:
        ratio = float(text)
    except ValueError:
        return None
    if math.isnan(ratio) or math.isinf(ratio) or ratio < 0:
        return None
    return int(ratio * 100)
