"""Whether a pod may be migrated at all, and whether now: conditions, sizes of workloads, and what is under way."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.algorithms.descheduling.throttle import (
    MigrationsUnderWay,
    ThrottledJob,
    ThrottledPod,
)
from koordpolicy.algorithms.descheduling.workload_limits import max_pods, replicas_can_move
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.descheduler.migration.rules import MigrationRules
from koordpolicy.descheduler.migration.workloads import Workload
from koordpolicy.descheduler.rules import ProfileRules, Stays
from koordpolicy.descheduler.snapshot import PodSight
from koordpolicy.kube.mirror import ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS, Resource
from koordpolicy.model.pod import Pod, PodKey

_LIMITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "globally": "as many migrations are under way as may be",
        "per_node": "as many pods of its node migrate as may",
        "per_namespace": "as many pods of its namespace migrate as may",
        "migrating_per_workload": "as many pods of its workload migrate as may",
        "unavailable_per_workload": "as many pods of its workload are away as may be",
    }
)


@dataclass(frozen=True, slots=True)
class MigrationPermits:
    """Asks for one pod after the other, all at one moment. `jobs` all that are not over.

    `arbitrating`: jobs that wait for arbitration do not count.
    """

    rules: MigrationRules
    pods: "PodIndex"
    jobs: Sequence[MigrationJob]
    now: int
    arbitrating: bool

    def forbidden(
        self, seen: PodSight, workload: Workload | None, profile: ProfileRules | None
    ) -> Stays | None:
        """Why the pod may not be migrated whatever else is under way; None where it may. `profile`: whose conditions count."""
        found = None if profile is None else profile.stays(seen.facts, seen.node, self.now)
        if found is not None or workload is None or not self.rules.checks_replicas(seen.facts, self.now):
            return found
        if workload.replicas is None:
            return Stays("workload", "its workload cannot be found")
        limits = self.rules.limits(seen.facts, self.now, workload.replicas)
        most, most_away = (max_pods(workload.replicas, one) for one in (limits.migrating, limits.unavailable))
        if replicas_can_move(workload.replicas, most, most_away):
            return None
        return Stays(
            "replicas",
            f"its workload has {workload.replicas} replicas, of which {most} may migrate and {most_away} be away",
        )

    def waits(self, seen: PodSight, workload: Workload | None, released: Iterable[str] = ()) -> Stays | None:
        """Why the pod has to wait for others; None where it does not. `released`: jobs that were let begin just now."""
        if not self.rules.limited(seen.facts, self.now):
            return None
        pod, free = seen.pod, frozenset(released)
        owners = frozenset() if workload is None else workload.owners
        near = self.pods.near(pod, owners)
        if workload is not None:
            # Who was let go and is not there anew yet is away as well.
            absent = (workload.replicas or 0) - sum(one.owner in owners for one in near)
            near += [
                ThrottledPod(pod.namespace, f"\0{number}", owner=workload.uid, ready=False)
                for number in range(absent)
            ]
            owners |= {workload.uid}
        under_way = MigrationsUnderWay(
            near,
            [
                ThrottledJob(*one.pod, one.phase, one.passed or one.name in free)
                for one in self.jobs
                if one.pod != pod.key
            ],
            self.arbitrating,
        )
        found = under_way.throttle(
            throttled(pod),
            self.rules.limits(seen.facts, self.now, 0 if workload is None else workload.replicas or 0),
            None if workload is None else workload.throttled_of(owners),
        )
        return Stays(found.refused_by, _LIMITS[found.refused_by]) if found.refused_by else None


class PodIndex:
    """Pods by controller, kept from the events of a watch, and by node."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._objects = objects
        self._by_owner: dict[str, set[PodKey]] = {}

    def changed(self, resource: Resource, change: ObjectChange) -> None:
        """A pod has come, changed or gone; other resources do not matter."""
        if resource is not PODS:
            return
        before, after = _controller(change.old), _controller(change.new)
        if before and before != after:
            keys = self._by_owner.get(before, set())
            keys.discard(change.key)
            if not keys:
                self._by_owner.pop(before, None)
        if after:
            self._by_owner.setdefault(after, set()).add(change.key)

    def near(self, pod: Pod, owners: Iterable[str]) -> list[ThrottledPod]:
        """The pods of its node and of some controllers."""
        sight = self._objects.sight(pod.node_name) if pod.node_name else None
        found = {} if sight is None else {one.key: one for one in sight.pods}
        for owner in owners:
            for key in self._by_owner.get(owner, ()):
                one = self._objects.pods.get(key)
                if one is not None:
                    found[key] = one
        return [throttled(one) for one in found.values()]


def _controller(pod: Object | None) -> str:
    """The UID of a pod's controller, empty without one."""
    references = () if pod is None else pod["metadata"].get("ownerReferences") or ()
    return next(
        (
            str(one.get("uid", ""))
            for one in references
            if isinstance(one, Mapping) and one.get("controller") is True
        ),
        "",
    )


def throttled(pod: Pod) -> ThrottledPod:
    """A pod as limits look at it."""
    owner, ready = pod.controller, pod.condition("Ready")
    return ThrottledPod(
        pod.namespace,
        pod.name,
        pod.node_name,
        "" if owner is None else owner.uid,
        ready is not None and ready.status == "True",
        pod.terminating,
        pod.phase,
    )
