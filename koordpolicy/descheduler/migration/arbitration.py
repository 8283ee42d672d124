"""Which migrations begin: jobs that wait, in their order, as far as conditions and limits let them; and jobs for pods that are to go."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from koordpolicy.algorithms.descheduling.arbitration import Decided, WaitingMigration, arbitrate
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.migration.job import MigrationJob, new_job
from koordpolicy.descheduler.migration.jobs import MigrationJobs
from koordpolicy.descheduler.migration.permits import MigrationPermits, PodIndex
from koordpolicy.descheduler.migration.rules import MigrationRules
from koordpolicy.descheduler.migration.workloads import Workload, WorkloadFinder
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.rules import ProfileRules, Stays
from koordpolicy.descheduler.snapshot import PodSight, sight_of
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import KubeError
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.protocol import (
    DESCHEDULING_PROFILE,
    EVICT_REASON,
    EVICT_TRIGGER,
    MIGRATED_WORKLOAD,
    PASSED_ARBITRATION,
)
from koordpolicy.model.reading import ObjectError


@dataclass(frozen=True, slots=True)
class Released:
    """What becomes of a job that waits: it begins, with these annotations, or fails, for a reason."""

    job: MigrationJob
    annotations: Mapping[str, str]
    forbidden: Stays | None = None


class Arbitration:
    """Asks policy and the cluster who may go. `now` gives nanoseconds since 1970, `pod_of` the pod of a job, None where it is gone."""

    def __init__(
        self,
        objects: ClusterObjects,
        jobs: MigrationJobs,
        pods: PodIndex,
        workloads: WorkloadFinder,
        now: Callable[[], int],
        pod_of: Callable[[MigrationJob], Awaitable[Pod | None]],
    ) -> None:
        self._objects = objects
        self._pods = pods
        self._pod_of = pod_of
        self._jobs = jobs
        self._workloads = workloads
        self._now = now

    async def round(self, rules: MigrationRules, graph: RuleGraph) -> list[Released]:
        """The jobs that begin now, and those that end before they have begun; the others wait on."""
        jobs = self._jobs.every()
        waiting = [
            one
            for one in jobs
            if one.ours and not (one.passed or one.done or one.paused or one.phase == "Running")
        ]
        if not waiting:
            return []
        now = self._now()
        asked: dict[str, tuple[PodSight, Workload | None, Stays | None]] = {}
        for job in waiting:
            pod = await self._pod_of(job)
            if pod is not None:
                workload, trouble = await self._workload(pod)
                asked[job.name] = sight_of(self._objects, pod, graph.catalogue, now), workload, trouble
        by_name = {one.name: one for one in waiting}
        under_way = [one for one in jobs if not one.done]
        permits = MigrationPermits(rules, self._pods, under_way, now, arbitrating=True)
        released: set[str] = set()
        why: dict[str, Stays] = {}

        def permitted(one: WaitingMigration) -> bool:
            seen, workload, trouble = asked[one.name]
            if trouble is not None:
                return True  # it waits until that is known
            profile = self._profile(
                by_name[one.name].annotations.get(DESCHEDULING_PROFILE), rules, graph, seen, now
            )
            found = permits.forbidden(seen, workload, profile)
            if found is not None:
                why[one.name] = found
            return found is None

        def has_room(one: WaitingMigration) -> bool:
            seen, workload, trouble = asked[one.name]
            if trouble is not None or permits.waits(seen, workload, released) is not None:
                return False
            released.add(one.name)
            return True

        order = [self._waiting(one, asked.get(one.name), jobs, rules, now) for one in waiting]
        found = []
        for one, decided in arbitrate(order, permitted, has_room):
            job = by_name[one.name]
            if decided is Decided.WAITING:
                continue
            annotations = {PASSED_ARBITRATION: "true"}
            seen = asked.get(one.name)
            if seen is not None and seen[1] is not None:
                annotations[MIGRATED_WORKLOAD] = (
                    f"{seen[1].uid}/{0 if seen[1].deleting else seen[1].replicas or 0}"
                )
            found.append(Released(job, annotations, why.get(one.name)))
        return found

    async def job_for(
        self, move: Move, rules: MigrationRules, graph: RuleGraph, profile: ProfileRules
    ) -> dict[str, object] | Stays:
        """The job that moves a pod, or why there is none."""
        pod, now = move.pod, self._now()
        jobs = self._jobs.of_pod(pod.key)
        if any(not one.done for one in jobs):
            return Stays("migrating", "it is being migrated already")
        seen = sight_of(self._objects, pod, graph.catalogue, now)
        mode = rules.mode(seen.facts, now)
        barred = rules.unreservable(seen.facts, pod.scheduler_name, now)
        if barred is not None:
            return barred
        workload, trouble = await self._workload(pod)
        if trouble is not None:
            return trouble
        permits = MigrationPermits(
            rules,
            self._pods,
            [one for one in self._jobs.every() if not one.done],
            now,
            arbitrating=False,
        )
        found = permits.forbidden(seen, workload, profile) or permits.waits(seen, workload)
        if found is not None:
            return found
        try:
            ttl = rules.ttl(seen.facts, now)
        except CelError as error:
            return Stays("ttl", f"nothing says how long it may take: {error}")
        # Its name is the pod's and how often that was to be moved before: nobody makes it twice, however old what he sees is.
        earlier = sum(one.pod_uid == pod.uid for one in jobs)
        annotations = {
            EVICT_REASON: move.reason,
            EVICT_TRIGGER: move.strategy,
            DESCHEDULING_PROFILE: profile.name,
        }
        return new_job(
            f"{pod.uid}-{earlier}", pod.raw, mode, ttl, rules.grace_seconds(seen.facts, now), annotations
        )

    async def _workload(self, pod: Pod) -> tuple[Workload | None, Stays | None]:
        owner = pod.controller
        if owner is None:
            return None, None
        try:
            return await self._workloads.of(pod.namespace, owner), None
        except (KubeError, ObjectError) as error:
            return None, Stays("workload", f"its workload cannot be read: {error}")

    def _profile(
        self, made_by: str | None, rules: MigrationRules, graph: RuleGraph, seen: PodSight, now: int
    ) -> ProfileRules | None:
        """The profile whose conditions count, one that policy names where the one that made the job is there no more; None for none."""
        profiles = graph.subjects("Descheduling")
        name = made_by if made_by in profiles else rules.conditions_of(seen.facts, now)
        if name not in profiles:
            return None
        try:
            return ProfileRules(graph, name)
        except CelError:
            return None

    def _waiting(
        self,
        job: MigrationJob,
        asked: tuple[PodSight, Workload | None, Stays | None] | None,
        jobs: Sequence[MigrationJob],
        rules: MigrationRules,
        now: int,
    ) -> WaitingMigration:
        created = float(job.created_at)
        if asked is None:
            return WaitingMigration(job.name, created)
        seen = asked[0]
        owner = seen.pod.controller
        together = owner.uid if owner is not None and rules.together(seen.facts, now) else ""
        under_way = 0
        if together:
            begun: set[PodKey] = {one.pod for one in jobs if one.passed or one.phase == "Running"}
            under_way = sum(
                (found := self._objects.pods.get(key)) is not None
                and found.controller is not None
                and found.controller.uid == together
                for key in begun
            )
        return WaitingMigration(job.name, created, rules.rank(seen.facts, now), together, under_way)
