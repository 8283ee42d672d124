"""The controller of PodMigrationJobs: what the process that leads does about them, again and again."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import PodView
from koordpolicy.descheduler.evictor import EvictionResult
from koordpolicy.descheduler.migration.arbitration import Arbitration, Released
from koordpolicy.descheduler.migration.evictors import MigrationEvictor
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.descheduler.migration.jobs import MigrationJobs
from koordpolicy.descheduler.migration.permits import PodIndex
from koordpolicy.descheduler.migration.rules import KIND, MigrationRules
from koordpolicy.descheduler.migration.steps import MigrationHost, MigrationSteps
from koordpolicy.descheduler.migration.workloads import WorkloadFinder
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.rules import ProfileRules, Stays
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from koordpolicy.kube.port import Object
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.pod import PodKey
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching

LOG: Final = logging.getLogger(__name__)

_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Aborted")
_WITHOUT_RULES: Final = 5.0
"""Seconds after which policy is asked again where it cannot say how pods are migrated."""


class MigrationController:
    """All migrations of a cluster. Every replica watches them, the one that leads carries them out."""

    def __init__(self, component: RunningComponent, objects: ClusterObjects) -> None:
        self._component = component
        self._objects = objects
        self._news = asyncio.Event()
        self._jobs = MigrationJobs(component.cluster, component.unreadable, self._news.set)
        self.pods = PodIndex(objects)
        backoff = component.watch_backoff()
        self._watching = tuple(
            Watching(component.cluster, resource, mirror, backoff)
            for resource, mirror in self._jobs.mirrors.items()
        )
        evictor = MigrationEvictor(component.cluster, monotonic)
        self._steps = MigrationSteps(
            MigrationHost(component.cluster, objects, self._jobs, evictor, now_ns, self._tell, self._moved)
        )
        workloads = WorkloadFinder(component.cluster, monotonic)
        self._arbitration = Arbitration(objects, self._jobs, self.pods, workloads, now_ns, self._steps.pod_of)
        self._rules: MigrationRules | None = None
        self._swept_at = 0.0

    def start(self, tasks: Tasks) -> None:
        """Watch jobs and Reservations."""
        for watching in self._watching:
            tasks.start(f"watch {watching.resource}", watching.run())

    async def synced(self) -> None:
        """Wait until all there is was heard of once."""
        for watching in self._watching:
            await watching.settled.wait()

    def status(self) -> dict[str, int]:
        """How many jobs there are by phase."""
        found: dict[str, int] = {}
        for job in self._jobs.every():
            phase = job.phase or "Pending"
            found[phase] = found.get(phase, 0) + 1
        return found

    def going(self, namespace: str) -> list[PodView]:
        """The pods of a namespace that are to go, and are there still."""
        found = []
        for job in self._jobs.every():
            pod = self._objects.pods.get(job.pod) if job.pod[0] == namespace and not job.done else None
            if pod is not None and not pod.terminating and job.pod_uid in ("", pod.uid):
                found.append(PodView(pod, {}))
        return found

    def migrates(self, pod: PodKey) -> bool:
        """Whether a pod is being migrated."""
        return any(not one.done for one in self._jobs.of_pod(pod))

    async def run(self) -> None:
        """Carry migrations out while this process leads."""
        await self.synced()
        remembered = False
        while True:
            self._news.clear()
            graph = self._component.live.graph
            rules = self._rules_of(graph)
            if rules is None:
                await asyncio.sleep(_WITHOUT_RULES)
                continue
            if not remembered:
                self._steps.remember(self._jobs.every(), rules)
                remembered = True
            began = monotonic()
            if rules.enabled:
                await self._look(rules, graph)
            await asyncio.sleep(max(rules.interval - (monotonic() - began), 0.0))

    async def migrate(self, move: Move, profile: ProfileRules) -> tuple[EvictionResult, str]:
        """Make a job for a pod that is to go; what came of it, and why there is none."""
        graph = self._component.live.graph
        rules = self._rules_of(graph)
        if rules is None or not rules.enabled:
            return EvictionResult.FAILED, "the kind Migration carries no migrations out"
        job = await self._arbitration.job_for(move, rules, graph, profile)
        if isinstance(job, Stays):
            return EvictionResult.REFUSED, f"{job.condition}: {job.reason}"
        try:
            await self._jobs.create(job)
        except AlreadyExists:
            return EvictionResult.REFUSED, "migrating: it is being migrated already"
        except NotFound:
            return EvictionResult.FAILED, "the cluster does not know PodMigrationJobs: apply deploy/crds"
        except (KubeError, ObjectError) as error:
            LOG.warning("pod %s stays on %s: %s", "/".join(move.pod.key), move.node, error)
            return EvictionResult.FAILED, str(error)
        return EvictionResult.MIGRATING, ""

    async def _look(self, rules: MigrationRules, graph: RuleGraph) -> None:
        """One look at all jobs."""
        self._steps.follow(rules)
        try:
            released = await self._arbitration.round(rules, graph)
        except KubeError as error:
            LOG.warning("no migration begins for now: %s", error)
            released = []
        for one in released:
            await self._guarded(one.job, self._release(one))
        for job in self._jobs.every():
            if job.done:
                await self._guarded(job, self._steps.clean(job))
            elif job.ours and not job.paused and (job.passed or job.phase == "Running"):
                await self._guarded(job, self._steps.take(job, rules, graph))
        if monotonic() - self._swept_at >= rules.sweep_interval:
            self._swept_at = monotonic()
            for job in [one for one in self._jobs.every() if one.ours]:
                await self._guarded(job, self._steps.sweep(job, rules))
        for phase in _PHASES:
            count = sum((one.phase or "Pending") == phase for one in self._jobs.every())
            self._component.process.metrics.set("koordpolicy_descheduler_migrations", count, phase=phase)

    async def _release(self, one: Released) -> None:
        if one.forbidden is None:
            await self._jobs.patch(one.job, {"metadata": {"annotations": dict(one.annotations)}})
            return
        message = (
            f'Pod "{"/".join(one.job.pod)}" is forbidden to migrate because it does not meet the requirements: '
            f"{one.forbidden.reason or one.forbidden.condition}"
        )
        await self._steps.fail(one.job, "ForbiddenMigratePod", message)

    async def _guarded(self, job: MigrationJob, work: Awaitable[None]) -> None:
        """One job's trouble is not that of the others; the next look tries again."""
        try:
            await work
        except Conflict:
            pass  # what we looked at is old
        except (KubeError, ObjectError, CelError) as error:
            LOG.warning("the migration %s waits: %s", job.name, error)
        except Exception:
            LOG.exception("the migration %s failed: internal error, please report", job.name)
            self._component.process.metrics.add("koordpolicy_internal_errors_total", place="migration")

    def _rules_of(self, graph: RuleGraph) -> MigrationRules | None:
        if self._rules is None or self._rules.digest != graph.digest:
            try:
                self._rules = MigrationRules(graph)
            except CelError as error:
                self._component.troubles.add(KIND, graph.digest, str(error), example="all migrations")
                self._rules = None
        return self._rules

    def _tell(self, about: Object, reason: str, message: str, bad: bool) -> None:
        self._component.recorder.record(
            about, reason, message, type="Warning" if bad else "Normal", action="Migrating"
        )

    def _moved(self, strategy: str, result: str) -> None:
        self._component.process.metrics.add(
            "koordpolicy_descheduler_evictions_total", strategy=strategy, result=result
        )
