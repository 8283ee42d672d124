"""Takes migrations further, one step after the other, from what stands in their objects and nothing else.

Before a pod is let go its job says so, so that whoever comes after a kill in between knows that it may be gone for this reason, and lets
it go where it is not.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from koordpolicy.algorithms.descheduling.migration import (
    BoundPod,
    KeptRoom,
    MigratingPod,
    Migration,
    MigrationAction,
    MigrationMode,
    MigrationSeen,
    next_step,
)
from koordpolicy.algorithms.descheduling.object_limiter import ObjectLimiter
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.migration.evictors import MigrationEvictor
from koordpolicy.descheduler.migration.job import MigrationJob, status_of
from koordpolicy.descheduler.migration.jobs import MigrationJobs
from koordpolicy.descheduler.migration.reservation import made_by, reservation_of, room_of
from koordpolicy.descheduler.migration.rules import MigrationRules
from koordpolicy.descheduler.snapshot import PodSight, sight_of
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound, Rejected
from koordpolicy.kube.port import Cluster, Object, Preconditions
from koordpolicy.kube.resources import POD_MIGRATION_JOBS, PODS, RESERVATIONS
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import Pod, PodKey, read_pod
from koordpolicy.model.protocol import (
    EVICT_ANYWAY,
    EVICT_REASON,
    EVICT_TRIGGER,
    MIGRATED_WORKLOAD,
    SOFT_EVICTION,
)
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.reservation import read_reservation
from koordpolicy.model.time import NANOSECONDS

LOG: Final = logging.getLogger(__name__)

_TRUE: Final = "True"
_EVICTION: Final = "Eviction"
_EVICTING: Final = "Evicting"
_GOOD: Final = frozenset(
    {"", "EvictComplete", _EVICTING, "WaitForPodBindReservation", "WaitForBoundPodReady"}
)
"""Reasons of conditions that tell of nothing bad."""


@dataclass(slots=True)
class MigrationHost:
    """What steps have of their process. `now` gives nanoseconds since 1970; `tell` writes an Event: about an object, with reason,
    message, and whether it is bad; `moved` is told of each pod that was let go, or not: by which strategy, and what came of it.
    """

    cluster: Cluster
    objects: ClusterObjects
    jobs: MigrationJobs
    evictor: MigrationEvictor
    now: Callable[[], int]
    tell: Callable[[Object, str, str, bool], None]
    moved: Callable[[str, str], None]


@dataclass(slots=True)
class MigrationSteps:
    """The steps of all jobs. What fails is tried again from the start."""

    host: MigrationHost
    _workloads: ObjectLimiter = field(default_factory=lambda: ObjectLimiter(0.0))
    _namespaces: ObjectLimiter = field(default_factory=lambda: ObjectLimiter(0.0))
    _again_at: dict[str, float] = field(default_factory=dict)
    """Until when a job is left alone whose pod was not let go, in seconds."""
    _let_go: set[str] = field(default_factory=set)
    """UIDs of pods that this process has let go; watches may show them for a moment still."""

    def follow(self, rules: MigrationRules) -> None:
        """Count by the limits of a revision."""
        for limiter, said in ((self._workloads, rules.of_workload), (self._namespaces, rules.of_namespace)):
            limiter.period, limiter.burst = said.period, said.burst

    def remember(self, jobs: Sequence[MigrationJob], rules: MigrationRules) -> None:
        """Count the evictions that jobs tell of, as if this process had let their pods go."""
        self._workloads, self._namespaces = ObjectLimiter(0.0), ObjectLimiter(0.0)
        self._again_at.clear()
        self._let_go.clear()
        self.follow(rules)
        gone = [
            (job.changed_at.get(_EVICTION, 0), job)
            for job in jobs
            if (one := job.conditions.get(_EVICTION)) is not None and (one.status or one.reason == _EVICTING)
        ]
        for at, job in sorted(gone, key=lambda one: one[0]):
            facts: Record = {"namespace": job.pod[0], "name": job.pod[1], "annotations": {}, "labels": {}}
            self._count(job, facts, rules, at)

    async def take(self, job: MigrationJob, rules: MigrationRules, graph: RuleGraph) -> None:
        """One step of a job that was let begin. Raises KubeError where something could not be written."""
        host, now = self.host, self.host.now()
        if self._again_at.get(job.name, 0.0) > now / NANOSECONDS:
            return
        pod = await self.pod_of(job)
        seen = None if pod is None else sight_of(host.objects, pod, graph.catalogue, now)
        migration = job.migration(rules.mode({} if seen is None else seen.facts, now))
        half_done = pod is not None and self._left_half_done(job, pod)
        if half_done:
            migration = migration.told(
                _EVICTION, False, "FailedEvict", "the eviction was begun, and not done"
            )
        step = next_step(migration, await self._sees(job, pod, seen, rules, now))
        if MigrationAction.CREATE_RESERVATION in step.actions and pod is not None and seen is not None:
            await self._reserve(job, pod, seen, rules, now)
        written = await self._write(job, migration, step.migration, now)
        if (
            MigrationAction.EVICT in step.actions
            and pod is not None
            and seen is not None
            and written.pod_uid == pod.uid
        ):
            await self._evict(written, pod, seen, rules, now, counted=not half_done)

    async def give_up_late(self, job: MigrationJob, held: str) -> None:
        """A job that nobody takes further ends once its time is over; `held` says why nobody does."""
        if (
            job.ours
            and not (job.done or job.paused)
            and job.ttl
            and self.host.now() - job.created_at >= job.ttl
        ):
            await self.fail(job, "Timeout", f"Abort job caused by timeout: {held}")

    async def clean(self, job: MigrationJob) -> None:
        """Nothing stays of a job that ended without success."""
        if job.phase != "Succeeded":
            found = self.host.jobs.reservations.get(job.reservation_name)
            if found is not None and made_by(found, job) and not _over(found):
                await self._delete_reservation(job)

    async def sweep(self, job: MigrationJob, rules: MigrationRules) -> None:
        """A job goes whose time is long over, whatever became of it."""
        kept = rules.kept_without_ttl if not job.ttl else job.ttl / NANOSECONDS + rules.kept_after_ttl
        if job.deleting or (self.host.now() - job.created_at) / NANOSECONDS < kept:
            return
        found = self.host.jobs.reservations.get(job.reservation_name)
        if found is not None and made_by(found, job):
            await self._delete_reservation(job)
        await _gone(
            self.host.cluster.delete(POD_MIGRATION_JOBS, job.name, preconditions=Preconditions(uid=job.uid))
        )
        self._again_at.pop(job.name, None)
        self._let_go.discard(job.pod_uid)

    async def fail(self, job: MigrationJob, reason: str, message: str) -> None:
        """A job ends before it has begun, or where nobody takes it further."""
        migration = job.migration(MigrationMode.RESERVATION_FIRST)
        await self._write(job, migration, migration.failed(reason, message), self.host.now())

    # --- what there is ----------------------------------------------------------------------------

    async def pod_of(self, job: MigrationJob) -> Pod | None:
        """The pod of a job, None where it is gone. Watches may be late: what they do not show is asked for."""
        found = await self._pod(job.pod)
        if found is not None and job.pod_uid and found.uid != job.pod_uid and _EVICTION not in job.conditions:
            return None  # another one of its name, which nobody wants to move
        return found

    async def _pod(self, key: PodKey) -> Pod | None:
        found = self.host.objects.pods.get(key)
        if found is not None or not all(key):
            return found
        try:
            return read_pod(await self.host.cluster.get(PODS, key[1], namespace=key[0]))
        except (NotFound, ObjectError):
            return None

    async def _sees(
        self, job: MigrationJob, pod: Pod | None, seen: PodSight | None, rules: MigrationRules, now: int
    ) -> MigrationSeen:
        return MigrationSeen(
            age=max(now - job.created_at, 0) / NANOSECONDS,
            pod=None if pod is None else MigratingPod(pod.uid, pod.node_name),
            reservation=await self._room(job, pod),
            # One whose pod was let go is not held up by that.
            limited=_EVICTION not in job.conditions
            and seen is not None
            and EVICT_ANYWAY not in job.annotations
            and self._too_often(job, seen, rules, now),
            pod_key="/".join(job.pod),
        )

    async def _room(self, job: MigrationJob, pod: Pod | None) -> KeptRoom | None:
        obj = self.host.jobs.reservations.get(job.reservation) if job.reservation else None
        if obj is None:
            return None
        found = read_reservation(obj)
        bound = None
        if found.current_owners:
            owner = found.current_owners[0]
            taker = await self._pod((owner.namespace, owner.name))
            gone = taker is None or taker.uid != owner.uid
            ready = None if taker is None else taker.condition("Ready")
            bound = BoundPod(not gone and ready is not None and ready.status == _TRUE, gone)
        return room_of(found, pod, bound)

    def _taker(self, job: MigrationJob) -> PodKey | None:
        obj = self.host.jobs.reservations.get(job.reservation)
        owners = () if obj is None else read_reservation(obj).current_owners
        return (owners[0].namespace, owners[0].name) if owners else None

    def _too_often(self, job: MigrationJob, seen: PodSight, rules: MigrationRules, now: int) -> bool:
        key, replicas = _workload_of(job)
        at = now / NANOSECONDS
        if key and self._workloads.limits(key, rules.most_of_workload(seen.facts, now, replicas), at):
            return True
        return self._namespaces.limits(job.pod[0], rules.most_of_namespace(seen.facts, now), at)

    def _count(self, job: MigrationJob, facts: Record, rules: MigrationRules, now: int) -> None:
        key, replicas = _workload_of(job)
        at = now / NANOSECONDS
        if key:
            self._workloads.evicted(key, rules.most_of_workload(facts, now, replicas), at)
        self._namespaces.evicted(job.pod[0], rules.most_of_namespace(facts, now), at)

    def _left_half_done(self, job: MigrationJob, pod: Pod) -> bool:
        """Whether a pod is to go, as its job says, and was not let go: whoever wrote that did not come to it."""
        condition = job.conditions.get(_EVICTION)
        return (
            condition is not None
            and not condition.status
            and condition.reason == _EVICTING
            and pod.uid == job.pod_uid
            and not pod.terminating
            and SOFT_EVICTION not in pod.annotations
            and pod.uid not in self._let_go
        )

    # --- what is done -----------------------------------------------------------------------------

    async def _reserve(
        self, job: MigrationJob, pod: Pod, seen: PodSight, rules: MigrationRules, now: int
    ) -> None:
        ttl = rules.ttl(seen.facts, now) if job.ttl is None else job.ttl
        try:
            await self.host.cluster.create(RESERVATIONS, reservation_of(job, pod, ttl, now))
        except AlreadyExists:
            return  # made by whoever was at it before
        except (Rejected, NotFound) as error:
            self.host.tell(job.raw, "FailedCreateReservation", str(error), True)
            raise

    async def _write(self, job: MigrationJob, before: Migration, after: Migration, now: int) -> MigrationJob:
        """Write where a migration stands; gives the job as it is then. Raises Conflict where somebody has changed it meanwhile."""
        jobs = self.host.jobs
        spec: dict[str, Any] = {}
        if after.pod_uid != job.pod_uid:
            spec["podRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": job.pod[0],
                "name": job.pod[1],
                "uid": after.pod_uid,
            }
        if after.has_reservation and not job.reservation:
            reference = {
                "apiVersion": RESERVATIONS.api_version,
                "kind": RESERVATIONS.kind,
                "name": job.reservation_name,
            }
            spec["reservationOptions"] = {"reservationRef": reference}
        found = job
        if spec:
            found = await jobs.patch(found, {"spec": spec})
        if _shown(after) != _shown(before):
            taker = self._taker(job) if after.holds("ReservationBound") else None
            found = await jobs.patch(found, {"status": status_of(job, after, taker, now)}, status=True)
            self._tell(job, before, after)
        return found

    def _tell(self, job: MigrationJob, before: Migration, after: Migration) -> None:
        tell = self.host.tell
        for type, one in after.conditions.items():
            if before.conditions.get(type) != one:
                message = one.message or f"{type} is {one.status}"
                tell(job.raw, one.reason or type, message, one.reason not in _GOOD)
        if after.phase != before.phase and after.phase in ("Succeeded", "Failed"):
            bad = after.phase == "Failed"
            reason = (after.reason or "Failed") if bad else "Complete"
            message = after.message or f"the migration of {'/'.join(job.pod)} has {after.phase.lower()}"
            tell(job.raw, reason, message, bad)

    async def _evict(
        self, job: MigrationJob, pod: Pod, seen: PodSight, rules: MigrationRules, now: int, *, counted: bool
    ) -> None:
        host, strategy = self.host, job.annotations.get(EVICT_TRIGGER, "")
        usual = rules.evictor(seen.facts, now)
        try:
            await host.evictor.evict(pod, job, usual, (rules.per_second, rules.burst), now)
        except KubeError as error:
            self._again_at[job.name] = now / NANOSECONDS + rules.retry_after
            migration = job.migration(rules.mode(seen.facts, now))
            failed = migration.told(_EVICTION, False, "FailedEvict", str(error))
            await self._write(job, migration, failed, now)
            host.moved(strategy, "failed" if isinstance(error, Forbidden) else "refused")
            return
        self._again_at.pop(job.name, None)
        self._let_go.add(pod.uid)
        if counted:
            self._count(job, seen.facts, rules, now)
        host.moved(strategy, "evicted")
        reason = job.annotations.get(EVICT_REASON) or strategy or "NotSet"
        message = f'Pod evicted from node "{pod.node_name}" by the reason "{reason}"'
        host.tell(pod.raw, "Descheduled", message, False)

    async def _delete_reservation(self, job: MigrationJob) -> None:
        await _gone(self.host.cluster.delete(RESERVATIONS, job.reservation_name))


async def _gone(deletion: Awaitable[None]) -> None:
    """What is gone already needs no deletion."""
    try:
        await deletion
    except (NotFound, Conflict):
        return


def _shown(migration: Migration) -> Migration:
    """What of a migration its status says."""
    return replace(migration, pod_uid="", has_reservation=False)


def _over(reservation: Object) -> bool:
    return (reservation.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _workload_of(job: MigrationJob) -> tuple[str, int]:
    uid, _, replicas = job.annotations.get(MIGRATED_WORKLOAD, "").partition("/")
    return uid, int(replicas) if replicas.isdecimal() and len(replicas) < 10 else 0
