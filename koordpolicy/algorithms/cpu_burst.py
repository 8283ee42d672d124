"""How containers may use CPU beyond their limits for a while: time saved up, and quotas that grow and shrink.

Amounts of CPU are millicores, quotas and bursts microseconds in the kernel's period, percentages of 100.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from koordpolicy.algorithms.container_resources import PERIOD


class PoolState(StrEnum):
    """How busy the CPUs are that containers share."""

    IDLE = "idle"
    COOLING = "cooling"
    OVERLOAD = "overload"
    UNKNOWN = "unknown"


class Step(StrEnum):
    """What becomes of a container's quota."""

    UP = "up"
    DOWN = "down"
    REMAIN = "remain"
    RESET = "reset"
    SKIP = "skip"
    """The container has no limit, and so no quota."""


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """How long a container may burst: tokens are percent of its limit, times seconds.

    Use from `spends` percent on takes tokens, use below `saves` percent gives them back. `period` in seconds, `ceiling`
    the largest quota as a percentage of the limit. A negative period is no limit; a ceiling below 100 forbids bursts.
    """

    period: float
    ceiling: float
    spends: float
    saves: float

    @property
    def capacity(self) -> int:
        """How many tokens can be saved up, and how many owed."""
        return max(int(self.period * (self.ceiling - 100)), 0)


def tokens_after(token: int, limits: TokenLimits, usage_percent: int, elapsed: float) -> int:
    """The tokens of a container that used that much of its limit for `elapsed` seconds, of which whole ones count."""
    seconds = int(elapsed)
    if usage_percent >= limits.spends:
        token -= (usage_percent - 100) * seconds
    elif usage_percent < limits.saves:
        token += (100 - usage_percent) * seconds
    return max(-limits.capacity, min(token, limits.capacity))


def burst_allowed(token: int, limits: TokenLimits) -> bool:
    """Whether a container with that many tokens may have more than its limit."""
    return limits.period < 0 or (limits.ceiling >= 100 and token > 0)


@dataclass(frozen=True, slots=True)
class PoolUse:
    """A pod as the shared CPUs see it: whether it has CPUs `apart`, whether what it uses is none of the pool's (`ignored`)."""

    request: int
    used: int | None
    apart: bool
    ignored: bool


def pool_state(
    cpus: int, node_used: int | None, pods: Sequence[PoolUse], threshold: float, cooling: float
) -> PoolState:
    """How busy the shared CPUs are, of a node with so many `cpus` in millicores.

    Pods that have CPUs apart take them out of the pool. From a share `threshold` of it on it is overloaded, from
    `cooling` of that on nothing should grow. Pods that were not measured use nothing.
    """
    if node_used is None:
        return PoolState.UNKNOWN
    there = cpus - sum(pod.request for pod in pods if pod.apart)
    used = node_used - sum(pod.used or 0 for pod in pods if pod.ignored)
    share = used / there if there > 0 else 1.0
    if share >= threshold:
        return PoolState.OVERLOAD
    return PoolState.COOLING if share >= threshold * cooling else PoolState.IDLE


def next_step(*, bursts: bool, allowed: bool, throttled: float | None, pool: PoolState) -> Step:
    """What becomes of the quota of a container with a limit.

    `bursts` says whether quotas grow at all, `allowed` whether this one may now; `throttled` is the share of periods in
    which it was held back, None for unknown.
    """
    if not bursts:
        return Step.RESET
    step = Step.DOWN if not allowed else Step.UP if throttled else Step.REMAIN
    if pool is PoolState.OVERLOAD:
        return Step.DOWN
    return Step.REMAIN if step is Step.UP and pool is not PoolState.IDLE else step


@dataclass(frozen=True, slots=True)
class QuotaSteps:
    """The largest quota as a percentage of the limit, the next one as shares of the last."""

    ceiling: float
    growth: float
    shrinkage: float


def next_quota(step: Step, base: int, current: int, steps: QuotaSteps) -> int:
    """The quota of a container that has `base` without bursts, now at `current`, after a step."""
    most = int(base * (steps.ceiling / 100)) if steps.ceiling > 100 else base
    if step is Step.UP:
        current = int(current * steps.growth)
    elif step is Step.DOWN:
        current = int(current * steps.shrinkage)
    elif step is Step.RESET:
        current = base
    return max(base, min(current, most))


def saved_burst(limit: int, share: float) -> int:
    """Unused time that a container with that limit may save up, as a share of its limit in each period; 0 without one."""
    return max(int(limit / 1000 * share * PERIOD), 0)


def saved_bursts(limits: Mapping[str, int], share: float) -> dict[str, int]:
    """The same for all containers of a pod, by name."""
    return {name: saved_burst(limit, share) for name, limit in limits.items()}
