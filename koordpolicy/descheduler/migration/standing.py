"""Where a migration stands, seen from outside: what it waits for, by which line of policy, and where its pod is to go.

Read from objects alone, as they are in a picture of a cluster. What only the process knows that carries migrations out, its pace and what
it was refused a moment ago, is not in them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.algorithms.descheduling.migration import MigrationMode
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.descheduler.migration.permits import MigrationPermits, PodIndex
from koordpolicy.descheduler.migration.rules import KIND, MigrationRules
from koordpolicy.descheduler.migration.workloads import Workload
from koordpolicy.descheduler.snapshot import sight_of
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.mirror import ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS
from koordpolicy.model.pod import Owner, Pod, read_owner
from koordpolicy.model.protocol import JOB_CREATED_BY, SOFT_EVICTION
from koordpolicy.model.reading import integer, mapping, objects, text
from koordpolicy.model.reservation import Reservation, read_reservation
from koordpolicy.model.time import NANOSECONDS

_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "globally": "limits.total",
        "per_node": "limits.perNode",
        "per_namespace": "limits.perNamespace",
        "migrating_per_workload": "workload.migrating",
        "unavailable_per_workload": "workload.unavailable",
    }
)
"""What policy says each limit by."""


@dataclass(frozen=True, slots=True)
class Waits:
    """What a migration waits for, in words; the decision of policy behind it, empty where none is."""

    what: str
    decision: str = ""


@dataclass(frozen=True, slots=True)
class MigrationStanding:
    """A job with its pod and Reservation as they are, None for what is not there; `mode` is how it goes about it.

    `left` are the seconds until its time is over, None without a limit. `waits` is empty for one that is over.
    """

    job: MigrationJob
    mode: MigrationMode
    pod: Pod | None
    reservation: Reservation | None
    left: float | None
    waits: Sequence[Waits]


@dataclass(frozen=True, slots=True)
class MigrationPicture:
    """What there is: all jobs, Reservations and ReplicaSets and the like by UID; `now` in nanoseconds since 1970."""

    graph: RuleGraph
    objects: ClusterObjects
    jobs: Sequence[MigrationJob]
    reservations: Mapping[str, Object]
    controllers: Mapping[str, Object]
    pods: Sequence[Object]
    now: int

    def standing(self, job: MigrationJob) -> MigrationStanding:
        """Where a job stands. Raises CelError where policy cannot say how pods are migrated."""
        rules = MigrationRules(self.graph)
        pod = self.objects.pods.get(job.pod)
        if pod is not None and job.pod_uid and pod.uid != job.pod_uid:
            pod = None  # another one of its name
        seen = None if pod is None else sight_of(self.objects, pod, self.graph.catalogue, self.now)
        mode = job.mode or rules.mode({} if seen is None else seen.facts, self.now)
        found = self.reservations.get(job.reservation) if job.reservation else None
        reservation = None if found is None else read_reservation(found)
        left = None if not job.ttl else (job.ttl - (self.now - job.created_at)) / NANOSECONDS
        waits: list[Waits] = []
        if not job.done:
            waits = [*self._held_up(job, rules, left)]
            if not waits:
                begun = job.passed or job.phase == "Running"
                waits = (
                    [_under_way(job, mode, pod, reservation)]
                    if begun
                    else [*self._arbitrated(job, rules, pod)]
                )
        return MigrationStanding(job, mode, pod, reservation, left, waits)

    def _held_up(self, job: MigrationJob, rules: MigrationRules, left: float | None) -> Sequence[Waits]:
        if not job.ours:
            return [Waits(f"`{job.annotations[JOB_CREATED_BY]}`, which made it, carries it out")]
        if job.paused:
            return [Waits("it is paused: nothing is done until `spec.paused` is false")]
        if left is not None and left <= 0:
            return [Waits("its time is over, and it is about to be given up")]
        if not rules.enabled:
            return [Waits("no migrations are carried out", f"{KIND}.enabled")]
        return []

    def _arbitrated(self, job: MigrationJob, rules: MigrationRules, pod: Pod | None) -> Sequence[Waits]:
        """Why arbitration has not let it begin."""
        if pod is None:
            return [Waits("its pod is not there: it is about to be given up")]
        seen = sight_of(self.objects, pod, self.graph.catalogue, self.now)
        index = PodIndex(self.objects)
        for obj in self.pods:
            metadata = obj["metadata"]
            key = (str(metadata.get("namespace") or "default"), str(metadata["name"]))
            index.changed(PODS, ObjectChange(key, None, obj))
        under_way = [one for one in self.jobs if not one.done]
        permits = MigrationPermits(rules, index, under_way, self.now, arbitrating=True)
        workload = None if pod.controller is None else self._workload(pod.controller)
        found = permits.waits(seen, workload)
        if found is not None:
            limit = _FIELDS[found.condition]
            return [Waits(f"arbitration: {found.reason}", f"{KIND}.{limit}")]
        unknown = (
            "; the limits of its workload cannot be told, which is not in the picture"
            if pod.controller is not None and workload is None
            else ""
        )
        return [
            Waits(
                f"arbitration, which takes jobs in their order and has not come to it{unknown}",
                f"{KIND}.arbitration.order",
            )
        ]

    def _workload(self, owner: Owner) -> Workload | None:
        """The workload of a pod as far as controllers in the picture tell; ReplicaSets of one Deployment count together."""
        found = self.controllers.get(owner.uid)
        if found is None:
            return None
        above = _controller(found)
        if above is None:
            own = _replicas(found)
            return None if own is None else Workload(owner.uid, own, frozenset({owner.uid}))
        sets = {
            uid: one
            for uid, one in self.controllers.items()
            if (of := _controller(one)) is not None and of.uid == above.uid
        }
        replicas = [one for one in map(_replicas, sets.values()) if one is not None]
        if len(replicas) < len(sets):
            return None
        return Workload(above.uid, sum(replicas), frozenset({above.uid, *sets}))


def _controller(obj: Object) -> Owner | None:
    owners = map(read_owner, objects(mapping(obj, "metadata"), "ownerReferences", "metadata"))
    return next((one for one in owners if one.controller), None)


def _replicas(obj: Object) -> int | None:
    """None where it is not said: an API server always says it, and a picture may leave it out."""
    return integer(mapping(obj, "spec"), "replicas", "spec")


def _under_way(
    job: MigrationJob, mode: MigrationMode, pod: Pod | None, reservation: Reservation | None
) -> Waits:
    """What one waits for that was let begin; the last step first."""
    eviction = job.conditions.get("Eviction")
    if eviction is not None and eviction.status:
        return _gone(reservation)
    if eviction is not None and eviction.reason == "FailedEvict":
        return Waits(
            f"its pod was not let go, and that is tried again: {eviction.message}", f"{KIND}.retryAfter"
        )
    if eviction is not None:
        asked = pod is not None and SOFT_EVICTION in pod.annotations
        return Waits(
            "its pod was asked to go by an annotation, and is there still"
            if asked
            else "its pod was let go, and its time to stop is not over"
        )
    if mode is MigrationMode.EVICT_DIRECTLY:
        return Waits(
            "its pod is to be let go next, as often as a workload and a namespace may lose pods",
            f"{KIND}.frequency.workload.most",
        )
    if not job.reservation:
        return Waits("its Reservation is to be made next")
    if reservation is None:
        return Waits(f"the Reservation `{job.reservation}`, which is not there")
    scheduled = reservation.condition("Scheduled")
    if scheduled is not None and scheduled.reason == "Unschedulable":
        return Waits(f"the scheduler finds no node for its Reservation: {scheduled.message}")
    if not reservation.node_name:
        return Waits(f"the scheduler, which has to find a node for the Reservation `{job.reservation}`")
    return Waits(
        "its pod is to be let go next, as often as a workload and a namespace may lose pods",
        f"{KIND}.frequency.workload.most",
    )


def _gone(reservation: Reservation | None) -> Waits:
    owners = () if reservation is None else reservation.current_owners
    if not owners:
        return Waits("a new pod of its owner, which takes the room that is kept")
    return Waits(f"the new pod {owners[0].namespace}/{owners[0].name}, which is not ready yet")


def job_text(job: MigrationJob) -> str:
    """What to call a job's phase."""
    return job.phase or ("released" if job.passed else "Pending")


def pod_of_status(job: MigrationJob) -> str:
    """The pod that took the room, as its status says; empty where none has."""
    found = mapping(mapping(job.raw, "status"), "podRef", "status")
    name = text(found, "name", "status.podRef")
    return f"{text(found, 'namespace', 'status.podRef')}/{name}" if name else ""
