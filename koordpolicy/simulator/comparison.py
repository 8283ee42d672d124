"""Two policies on the same input, by several seeds: what differs, and how sure that is.

Each seed gives a pair of reports, whose difference is free of what chance does to both alike. From the differences
of all seeds come their mean and its interval of 95 % by Student's t. A difference matters where that interval leaves 0 out and
the mean is no trifle beside what there was before.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

Report = Mapping[str, Any]

_STUDENT: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Two-sided 95 % by degrees of freedom, from 1; beyond them the normal distribution's."""
_NORMAL: Final = 1.96
TRIFLE: Final = 0.01
"""Share of what there was before below which a difference does not matter."""


class Unit(StrEnum):
    """How the numbers of a measure are told."""

    SHARE = "share"
    CORES = "cores"
    CORE_HOURS = "core hours"
    PODS = "pods"
    NODES = "nodes"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a report. `more_is_better` is None where that depends on what one wants."""

    name: str
    unit: Unit
    of: Callable[[Report], float]
    more_is_better: bool | None = None


def _evictions(report: Report) -> float:
    return float(sum(((report["agents"] or {}).get("evictions") or {}).values()))


MEASURES: Final = (
    Measure("CPU in use", Unit.SHARE, lambda one: one["utilisation"]["cpuUsed"]["mean"]),
    Measure("CPU requested", Unit.SHARE, lambda one: one["utilisation"]["cpuRequested"]["mean"]),
    Measure("memory in use", Unit.SHARE, lambda one: one["utilisation"]["memoryUsed"]["mean"]),
    Measure("best-effort work", Unit.CORE_HOURS, lambda one: one["batch"]["coreHours"], True),
    Measure("best-effort work withheld", Unit.SHARE, lambda one: one["suppression"]["withheldShare"], False),
    Measure(
        "node time short for services", Unit.SHARE, lambda one: one["services"]["shortOfNodeTime"], False
    ),
    Measure(
        "services slower than they may", Unit.SHARE, lambda one: one["services"]["violationShare"], False
    ),
    Measure(
        "response time of services",
        Unit.MILLISECONDS,
        lambda one: 1000 * one["services"]["tailSeconds"],
        False,
    ),
    Measure("pods scheduled", Unit.PODS, lambda one: one["pods"]["scheduled"], True),
    Measure("pods finished", Unit.PODS, lambda one: one["pods"]["finished"], True),
    Measure("pods pending at the end", Unit.PODS, lambda one: one["pods"]["pending"], False),
    Measure("pods refused", Unit.PODS, lambda one: one["pods"]["refused"], False),
    Measure("pods preempted", Unit.PODS, lambda one: one["scheduling"]["preempted"], False),
    Measure(
        "wait for a node, mean", Unit.SECONDS, lambda one: one["scheduling"]["waitSeconds"]["mean"], False
    ),
    Measure(
        "wait for a node, 95 %", Unit.SECONDS, lambda one: one["scheduling"]["waitSeconds"]["p95"], False
    ),
    Measure("free CPU in small pieces", Unit.SHARE, lambda one: one["fragmentation"]["stranded"], False),
    Measure("evictions", Unit.PODS, _evictions, False),
    Measure("deviation of nodes' CPU in use", Unit.SHARE, lambda one: one["balance"]["deviation"], False),
    Measure("fullest node", Unit.SHARE, lambda one: one["balance"]["highestNode"], False),
    Measure("emptiest node", Unit.SHARE, lambda one: one["balance"]["lowestNode"]),
    Measure(
        "nodes above their threshold",
        Unit.NODES,
        lambda one: one["balance"]["overloadedNodes"] or 0.0,
        False,
    ),
    Measure(
        "pods lost with their nodes", Unit.PODS, lambda one: (one["faults"] or {}).get("lostPods", 0), False
    ),
    Measure("pods descheduled", Unit.PODS, lambda one: (one["descheduling"] or {}).get("evicted", 0)),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure before and after, as means over seeds, with the interval of the difference; None with a single seed."""

    measure: Measure
    before: float
    after: float
    low: float | None
    high: float | None

    @property
    def difference(self) -> float:
        """How much more there is after."""
        return self.after - self.before

    @property
    def relative(self) -> float | None:
        """The difference as a share of what there was before; None where that was nothing."""
        return self.difference / abs(self.before) if self.before else None

    @property
    def sure(self) -> bool:
        """Whether chance alone does not make such a difference."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    @property
    def matters(self) -> bool:
        """Whether it is sure that there is a difference, and no trifle."""
        return self.sure and abs(self.difference) > TRIFLE * abs(self.before)

    @property
    def better(self) -> bool | None:
        """Whether it is better after; None where that depends, or where nothing is sure."""
        if not self.matters or self.measure.more_is_better is None:
            return None
        return (self.difference > 0) == self.measure.more_is_better


def compare(before: Sequence[Report], after: Sequence[Report]) -> list[Compared]:
    """All measures; reports at the same place are of the same seed."""
    found = [*MEASURES, *_offers([*before, *after])]
    return [
        compared(one, [one.of(report) for report in before], [one.of(report) for report in after])
        for one in found
    ]


def compared(measure: Measure, before: Sequence[float], after: Sequence[float]) -> Compared:
    """One measure by its values before and after; those at the same place are of the same seed."""
    count = len(before)
    differences = [late - early for early, late in zip(before, after, strict=True)]
    mean = sum(differences) / count
    first, second = sum(before) / count, sum(after) / count
    if count < 2:
        return Compared(measure, first, second, None, None)
    spread = math.sqrt(sum((one - mean) ** 2 for one in differences) / (count - 1))
    quantile = _STUDENT[count - 2] if count - 2 < len(_STUDENT) else _NORMAL
    margin = quantile * spread / math.sqrt(count)
    return Compared(measure, first, second, mean - margin, mean + margin)


def _offers(reports: Sequence[Report]) -> list[Measure]:
    """What is offered and allocated of each overcommitted CPU that any report tells of."""
    names = sorted({name for one in reports for name in one["overcommit"] if "cpu" in name})
    return [
        Measure(
            f"{name.rpartition('/')[2]} {word}",
            Unit.CORES,
            lambda one, name=name, key=key: one["overcommit"].get(name, {}).get(key, 0.0),  # type: ignore[misc]
        )
        for name in names
        for word, key in (("offered", "offeredMean"), ("allocated", "allocatedMean"))
    ]
