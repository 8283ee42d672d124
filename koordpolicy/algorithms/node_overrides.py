"""What a node itself says of how it is overcommitted and measured: Koordinator's strategy in an annotation, and labels above it.

The annotation is whole or nothing, as the reference has it: a value of the wrong type makes all of it unreadable. What can be
read and makes no sense is passed over by itself.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.algorithms.strategy_checks import outside
from koordpolicy.model.amounts import within
from koordpolicy.model.facts import Record, Times
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import (
    COLOCATION_STRATEGY,
    CPU_RECLAIM_RATIO,
    MEMORY_RECLAIM_RATIO,
    MID_STATIC_CPU_RESERVED_RATIO,
    MID_STATIC_MEMORY_RESERVED_RATIO,
)
from koordpolicy.model.reading import ObjectError, embedded_object
from koordpolicy.model.slo_config import COLOCATION, LAYOUTS, ConfigError, Strategy, read
from koordpolicy.model.time import NANOSECONDS, parse_duration

PREFIX: Final = "overrides"
RATIO_LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        CPU_RECLAIM_RATIO: "cpuReclaim",
        MEMORY_RECLAIM_RATIO: "memoryReclaim",
        MID_STATIC_CPU_RESERVED_RATIO: "midStaticCPU",
        MID_STATIC_MEMORY_RESERVED_RATIO: "midStaticMemory",
    }
)
"""Labels with a ratio (0.6 is 60 %), and the facts they say."""

MEMORY_POLICIES: Final = ("usageWithoutPageCache", "usageWithHotPageCache", "usageWithPageCache")
"""What agents can count as used memory."""

_MOST: Final = 2**53
"""Percent that a double counts one by one."""

_Convert = Callable[[Any, Times], object]


def _same(value: Any, _: Times) -> object:
    return value


def _percent(value: Any, _: Times) -> object:
    return float(value)


def _share(value: Any, _: Times) -> object:
    return float(value) * 100


def _seconds(value: Any, times: Times) -> object:
    return times.duration(within(value * NANOSECONDS))


def _minutes(value: Any, times: Times) -> object:
    return times.duration(within(value * 60 * NANOSECONDS))


def _durations(value: Any, times: Times) -> object:
    return [times.duration(within(parse_duration(one))) for one in value]


@dataclass(frozen=True, slots=True)
class OverrideField:
    """A field of the strategy (its path), the fact that it is, and what makes a value of the policy language of it."""

    path: tuple[str, ...]
    fact: str
    convert: _Convert


def _fields(rows: Mapping[str, tuple[str, _Convert]]) -> tuple[OverrideField, ...]:
    return tuple(OverrideField(tuple(path.split(".")), *row) for path, row in rows.items())


FIELDS: Final = _fields(
    {
        "enable": ("enabled", _same),
        "cpuReclaimThresholdPercent": ("cpuReclaim", _percent),
        "cpuCalculatePolicy": ("cpuPolicy", _same),
        "memoryReclaimThresholdPercent": ("memoryReclaim", _percent),
        "memoryCalculatePolicy": ("memoryPolicy", _same),
        "batchCPUThresholdPercent": ("batchCPULimit", _percent),
        "batchMemoryThresholdPercent": ("batchMemoryLimit", _percent),
        "midReclaimMode": ("midMode", _same),
        "midCPUThresholdPercent": ("midCPULimit", _percent),
        "midMemoryThresholdPercent": ("midMemoryLimit", _percent),
        "midUnallocatedPercent": ("midUnallocated", _percent),
        "midStaticCPUReservedPercent": ("midStaticCPU", _percent),
        "midStaticMemoryReservedPercent": ("midStaticMemory", _percent),
        "degradeTimeMinutes": ("staleAfter", _minutes),
        "updateTimeThresholdSeconds": ("refreshAfter", _seconds),
        "resourceDiffThreshold": ("changedBy", _share),
        "metricReportIntervalSeconds": ("reportEvery", _seconds),
        "metricAggregateDurationSeconds": ("averagesOver", _seconds),
        "metricAggregatePolicy.durations": ("percentilesOver", _durations),
        "metricMemoryCollectPolicy": ("memoryMeasure", _same),
    }
)
"""All that a node can say."""


def override_facts(node: Node, times: Times) -> Record:
    """What the node says, as facts; `overrides.problems` are phrases about what it says and nobody can follow."""
    problems: list[str] = []
    record: Record = {f"{PREFIX}.problems": problems}
    if COLOCATION_STRATEGY in node.annotations:
        try:
            strategy = _strategy(node.annotations[COLOCATION_STRATEGY])
        except ObjectError as error:
            problems.append(str(error))
        else:
            _put(record, strategy, times, problems)
    for label, fact in RATIO_LABELS.items():
        written = node.labels.get(label)
        if written is None:
            continue
        percent = _ratio(written)
        if percent is None:
            problems.append(f"{label}: `{written[:32]}` is not a ratio of at least 0")
        else:
            record[f"{PREFIX}.{fact}"] = percent
    return record


def _put(record: Record, strategy: Strategy, times: Times, problems: list[str]) -> None:
    for one in FIELDS:
        value: Any = strategy
        for step in one.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        # An empty list is as absent, as where strategies are merged.
        if value is None or value == []:
            continue
        wrong = [f"{COLOCATION_STRATEGY}.{words}" for words in _wrong(one.path, value)]
        problems.extend(wrong)
        if not wrong:
            record[f"{PREFIX}.{one.fact}"] = one.convert(value, times)


def _strategy(source: str) -> Strategy:
    """Raises ObjectError."""
    declared = embedded_object(source, COLOCATION_STRATEGY)
    try:
        return read(LAYOUTS[COLOCATION].strategy, declared, COLOCATION_STRATEGY)
    except ConfigError as error:
        raise ObjectError(str(error)) from None


def _wrong(path: tuple[str, ...], value: Any) -> Iterator[str]:
    if path == ("metricMemoryCollectPolicy",) and value not in MEMORY_POLICIES:
        yield f"{path[0]} is `{value[:32]}`: one of {', '.join(MEMORY_POLICIES)}"
    if len(path) == 1:
        yield from outside(LAYOUTS[COLOCATION].strategy, {path[0]: value})


def _ratio(written: str) -> float | None:
    """Whole percent, cut off as the reference cuts: 0.57 is 56 %. None for what is no ratio."""
    try:
        percent = float(written) * 100
    except ValueError:
        return None
    return float(int(percent)) if math.isfinite(percent) and 0 <= percent <= _MOST else None
