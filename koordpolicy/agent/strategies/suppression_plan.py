"""From a suppression decision to what is written: CPUs, or a quota, for the group of best-effort pods."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from koordpolicy.agent.strategies.suppression import QUOTA, Suppression, SuppressionAction
from koordpolicy.algorithms.container_resources import UNLIMITED
from koordpolicy.algorithms.cpuset import CpusetWrite, Reach, transition
from koordpolicy.algorithms.suppress import CpusetPlan, plan_cpuset, quota_write
from koordpolicy.model.topology import Processor

_NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class BestEffortGroup:
    """The node's CPUs and what the kernel holds for the group of best-effort pods now.

    `current` and `quota` (microseconds in the kernel's period, -1 for none) are None where they cannot be
    read; such a part is then left alone. `borrowed` are CPUs of pods that let others run there, `excluded`
    those nobody else may use. `capacity` in millicores.
    """

    processors: Sequence[Processor]
    capacity: int
    current: AbstractSet[int] | None
    quota: int | None
    borrowed: AbstractSet[int] = field(default_factory=lambda: _NOBODY)
    excluded: AbstractSet[int] = field(default_factory=lambda: _NOBODY)
    kubelet_owns_parents: bool = False
    takes_fewer: bool = False
    """Whether it gets all that are left where these are fewer than it should have. Koordinator then picks none, and it stays where it is,
    on CPUs that nobody else may use as well: one pod that owns nearly all would end suppression."""

    @property
    def allowed(self) -> frozenset[int]:
        """All CPUs that best-effort work may ever use."""
        return frozenset(one.cpu for one in self.processors) - self.excluded


@dataclass(frozen=True, slots=True)
class SuppressionPlan:
    """What is to be written, in order; empty and None for nothing. `picked` tells how CPUs were chosen."""

    cpuset: tuple[CpusetWrite, ...] = ()
    quota: int | None = None
    picked: CpusetPlan | None = None


def plan(decision: Suppression, group: BestEffortGroup) -> SuppressionPlan:
    """What brings the group to the decision. The mechanism that is not in use gives back what it took."""
    if decision.outcome is SuppressionAction.KEEP:
        return SuppressionPlan()
    if decision.outcome is SuppressionAction.RECOVER:
        return SuppressionPlan(_recovered_cpuset(group), _recovered_quota(group))
    if decision.mechanism == QUOTA:
        quota = None
        if group.quota is not None:
            quota = quota_write(decision.target, group.quota, group.capacity, decision.quota_limits)
        return SuppressionPlan(_recovered_cpuset(group), quota)
    if group.current is None:
        return SuppressionPlan(quota=_recovered_quota(group))
    picked = plan_cpuset(
        decision.target,
        group.processors,
        group.current,
        excluded=group.excluded,
        borrowed=group.borrowed,
        limits=decision.cpuset_limits,
    )
    few = group.takes_fewer and picked.count > len(group.allowed)
    chosen = sorted(group.allowed) if few else picked.picked
    writes = transition(chosen, group.current, group.allowed, kubelet_owns_parents=group.kubelet_owns_parents)
    return SuppressionPlan(writes, _recovered_quota(group), picked)


def _recovered_quota(group: BestEffortGroup) -> int | None:
    return None if group.quota in (None, UNLIMITED) else UNLIMITED


def _recovered_cpuset(group: BestEffortGroup) -> tuple[CpusetWrite, ...]:
    if group.current is None or not group.allowed or group.current == group.allowed:
        return ()
    return (CpusetWrite(Reach.TOP_DOWN, group.allowed),)
