"""How many migrations may be under way at once: at all, from one node, in one namespace, of one workload."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.algorithms.descheduling.workload_limits import Share, max_pods

_PENDING: Final = frozenset({"", "Pending"})
_DONE: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class ThrottledPod:
    """A pod that there is. `owner`: the UID of its controller, empty without one."""

    namespace: str
    name: str
    node: str = ""
    owner: str = ""
    ready: bool = True
    terminating: bool = False
    phase: str = "Running"

    @property
    def available(self) -> bool:
        """Whether it does its work."""
        return self.ready and not self.terminating and self.phase not in _DONE


@dataclass(frozen=True, slots=True)
class ThrottledJob:
    """A migration of a pod. `released`: by arbitration."""

    namespace: str
    pod: str
    phase: str
    released: bool = False

    def counts(self, arbitrating: bool) -> bool:
        """Whether it is under way; while others wait for arbitration, one that waits itself is not."""
        return self.phase == "Running" or (self.phase in _PENDING and (self.released or not arbitrating))


@dataclass(frozen=True, slots=True)
class MigrationLimits:
    """Migrations at once; None and 0 are no limit. The last two are by workload, None for what follows from its replicas."""

    globally: int | None = None
    per_node: int | None = None
    per_namespace: int | None = None
    migrating: Share | None = None
    unavailable: Share | None = None


@dataclass(frozen=True, slots=True)
class ThrottledWorkload:
    """The workload of a pod: how many replicas it is to have, and the UIDs of all controllers of its pods."""

    replicas: int
    owners: frozenset[str]


@dataclass(frozen=True, slots=True)
class Throttled:
    """Whether a pod has to wait. `refused_by`: the limit that is reached, empty for none; numbers of pods of its workload."""

    refused_by: str = ""
    max_migrating: int | None = None
    max_unavailable: int | None = None
    migrating: int | None = None
    unavailable: int | None = None


@dataclass(frozen=True, slots=True)
class MigrationsUnderWay:
    """The pods that there are, and the migrations of pods."""

    pods: Sequence[ThrottledPod]
    jobs: Sequence[ThrottledJob]
    arbitrating: bool = False
    _by_pod: dict[tuple[str, str], bool] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        counted = {(one.namespace, one.pod): True for one in self.jobs if one.counts(self.arbitrating)}
        object.__setattr__(self, "_by_pod", counted)

    def throttle(
        self, pod: ThrottledPod, limits: MigrationLimits, workload: ThrottledWorkload | None
    ) -> Throttled:
        """Whether one more migration, of `pod`, would be too many; its own do not count.

        `workload` is None for a pod without a controller, of which the limits by workload say nothing.
        """
        own = (pod.namespace, pod.name)
        jobs = [one for one in self.jobs if one.counts(self.arbitrating) and (one.namespace, one.pod) != own]
        others = [one for one in self.pods if (one.namespace, one.name) != own]
        if _reached(len(jobs), limits.globally):
            return Throttled("globally")
        on_node = (one for one in others if pod.node and one.node == pod.node)
        if pod.node and _reached(self._migrating(on_node), limits.per_node):
            return Throttled("per_node")
        if _reached(sum(one.namespace == pod.namespace for one in jobs), limits.per_namespace):
            return Throttled("per_namespace")
        return Throttled() if workload is None else self._by_workload(pod, others, limits, workload)

    def _by_workload(
        self,
        pod: ThrottledPod,
        others: Sequence[ThrottledPod],
        limits: MigrationLimits,
        workload: ThrottledWorkload,
    ) -> Throttled:
        siblings = [one for one in others if one.owner == pod.owner and one.namespace == pod.namespace]
        migrating = [one for one in siblings if (one.namespace, one.name) in self._by_pod]
        away = {(one.namespace, one.name) for one in migrating}
        away.update(
            (one.namespace, one.name)
            for one in (*others, pod)
            if one.owner in workload.owners and not one.available
        )
        most = max_pods(workload.replicas, limits.migrating)
        most_away = max_pods(workload.replicas, limits.unavailable)
        refused = ""
        if migrating and len(migrating) >= most:
            refused = "migrating_per_workload"
        elif len(away) >= most_away:
            refused = "unavailable_per_workload"
        return Throttled(refused, most, most_away, len(migrating), len(away))

    def _migrating(self, pods: Iterable[ThrottledPod]) -> int:
        return sum((one.namespace, one.name) in self._by_pod for one in pods)


def _reached(count: int, limit: int | None) -> bool:
    return limit is not None and limit > 0 and count >= limit
