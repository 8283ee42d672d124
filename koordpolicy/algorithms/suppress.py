"""Carrying out CPU suppression: from a target in millicores to CPUs or to a quota.

The target itself is policy. Here is how fast the group of best-effort pods may grow, how CPUs are
shared between those that others have reserved and the rest, and which changes are too small to write.
"""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from koordpolicy.algorithms.cpuset import pick_cpus
from koordpolicy.model.topology import Processor


@dataclass(frozen=True, slots=True)
class CpusetLimits:
    """At least `minimum_cpus`; at most `growth` (a share of all processors, rounded up) more a round."""

    minimum_cpus: int
    growth: float


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """For the quota of the whole group, in microseconds a `period`.

    At least `minimum`. `growth` and `negligible` are shares of the node's capacity: what may be added in
    one round, and below which a change is not worth a write.
    """

    period: int
    minimum: int
    growth: float
    negligible: float


@dataclass(frozen=True, slots=True)
class CpusetPlan:
    """How many CPUs the group gets, and which: `from_borrowed` of those lent by others, the rest shared."""

    count: int
    from_borrowed: int
    from_shared: int
    picked: tuple[int, ...]


def cpu_count(target: int, current: int, processors: int, limits: CpusetLimits) -> int:
    """The number of CPUs for a target in millicores. Shrinking is immediate, growing goes in steps."""
    count = max(-(-target // 1000), limits.minimum_cpus)
    step = math.ceil(processors * limits.growth)
    return current + step if count - current > step else count


def plan_cpuset(
    target: int,
    processors: Sequence[Processor],
    current: AbstractSet[int],
    *,
    excluded: AbstractSet[int],
    borrowed: AbstractSet[int],
    limits: CpusetLimits,
) -> CpusetPlan:
    """The CPUs for a target in millicores.

    `excluded` are never used. `borrowed` belong to pods that let others run on their CPUs; both kinds
    are used in proportion to their number.
    """
    usable = [processor for processor in processors if processor.cpu not in excluded]
    lent = [processor for processor in usable if processor.cpu in borrowed]
    shared = [processor for processor in usable if processor.cpu not in borrowed]
    count = cpu_count(target, len(current), len(processors), limits)
    from_lent = count * len(lent) // len(usable) if usable else 0
    picked = (*pick_cpus(lent, from_lent), *pick_cpus(shared, count - from_lent))
    return CpusetPlan(count, from_lent, count - from_lent, picked)


def quota_write(target: int, current: int, capacity: int, limits: QuotaLimits) -> int | None:
    """The quota to write for a target, None when the change is negligible.

    `target` and `capacity` in millicores, `current` as read from the kernel (-1 = unlimited). The minimum
    is always written. A group without a limit gets its quota at once.
    """
    quota = max(target * limits.period // 1000, limits.minimum)
    whole = float(-(-capacity // 1000)) * float(limits.period)
    if abs(float(quota) - float(current)) < whole * limits.negligible and quota != limits.minimum:
        return None
    step = whole * limits.growth
    if float(quota) - float(current) > step and current != -1:
        return current + int(step)
    return quota
