"""Whether best-effort pods get what they ask of the CPU, and how much of it has to be released if not.

Amounts are millicores, shares of one (0.3 for 30 percent).
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from koordpolicy.algorithms.container_resources import UNLIMITED

_ONE_CORE: Final = 1000
"""Work on less than one CPU uses whatever it is given: its use says nothing."""

_MOST_THRESHOLD: Final = 0.6
"""Koordinator takes no more: pods that get most of what they ask for do not go."""


class Verdict(StrEnum):
    """How the question ended: the first check that settled it."""

    FEW_SAMPLES = "not enough samples"
    AVERAGE_USAGE = "average usage not high enough"
    AVERAGE_SATISFIED = "average satisfaction enough"
    CURRENT_USAGE = "current usage not high enough"
    CURRENT_SATISFIED = "current satisfaction enough"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class BestEffortUse:
    """What best-effort pods used, asked for, and might use at most: of one moment, or averages of `count` samples."""

    used: float
    request: float
    limit: float
    count: int = 1

    def of(self, limit: float) -> "BestEffortUse":
        """The same, had they been able to use so much."""
        return replace(self, limit=limit)


@dataclass(frozen=True, slots=True)
class SatisfactionLimits:
    """From which share of requests pods go (`threshold`), up to which (`upper`), and how much of the limit must be in use."""

    threshold: float
    upper: float
    usage: float

    @property
    def valid(self) -> bool:
        """Whether pods go that get little, and not until they get all they ask for."""
        return 0 < self.threshold <= _MOST_THRESHOLD and self.threshold <= self.upper < 1


def real_limit(cpus: int, quota: int, period: int) -> int:
    """CPU that a group of that many CPUs and that quota (-1 for none) in a period can get at most."""
    by_cpus = cpus * _ONE_CORE
    return by_cpus if quota == UNLIMITED else min(by_cpus, quota * _ONE_CORE // period)


def offered(allocatable: int | None) -> int:
    """What best-effort pods can get where that is what the node offers to them; -1 when it offers nothing of the sort."""
    if allocatable is None or allocatable < 0:
        return -1
    return max(allocatable, 1)


def enough_samples(count: int, interval: float, window: float) -> bool:
    """Whether samples, taken at that interval, cover a third of a window; seconds."""
    return count * interval >= window / 3


def release(
    average: BestEffortUse, current: BestEffortUse, limits: SatisfactionLimits
) -> tuple[int, Verdict]:
    """How much of requests has to go: the less of what the average and the present moment call for."""
    if not _in_use(average, limits.usage):
        return 0, Verdict.AVERAGE_USAGE
    wanted = _missing(average, limits)
    if wanted <= 0:
        return 0, Verdict.AVERAGE_SATISFIED
    if not _in_use(current, limits.usage):
        return 0, Verdict.CURRENT_USAGE
    wanted = min(wanted, _missing(current, limits))
    if wanted <= 0:
        return 0, Verdict.CURRENT_SATISFIED
    return wanted, Verdict.RELEASE


def _in_use(seen: BestEffortUse, share: float) -> bool:
    if seen.limit <= 0:
        return False
    return seen.limit < _ONE_CORE or seen.used / seen.limit >= share


def _missing(seen: BestEffortUse, limits: SatisfactionLimits) -> int:
    if seen.request <= 0:
        return 0
    satisfied = seen.limit / seen.request
    return 0 if satisfied > limits.threshold else int(seen.request * (limits.upper - satisfied))
