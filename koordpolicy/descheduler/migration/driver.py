"""The driver of PodMigrationJobs: what is done about all of them at one look, whoever brings the looks about."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import PodView
from koordpolicy.descheduler.evictor import Check, EvictionResult, always
from koordpolicy.descheduler.migration.arbitration import Arbitration, Released
from koordpolicy.descheduler.migration.evictors import MigrationEvictor
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.descheduler.migration.jobs import MigrationJobs
from koordpolicy.descheduler.migration.permits import PodIndex
from koordpolicy.descheduler.migration.rules import MigrationRules
from koordpolicy.descheduler.migration.steps import MigrationHost, MigrationSteps
from koordpolicy.descheduler.migration.workloads import WorkloadFinder
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.rules import ProfileRules, Stays
from koordpolicy.descheduler.under_way import StandingGraph
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from koordpolicy.kube.event_correlator import EventRecorder
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.pod import PodKey
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.counting import Counters

LOG: Final = logging.getLogger(__name__)

_WAITED: Final = "arbitration has not let it begin"
_SWITCHED_OFF: Final = "no migrations are carried out (`Migration.enabled`)"
_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Aborted")


@dataclass(frozen=True, slots=True)
class MigrationSite:
    """What a driver has around it. `graph` is asked for policy; `troubled` hears of policy that cannot say how pods are migrated.

    `now` gives nanoseconds since 1970, `clock` seconds that never go back; `sleep` waits for seconds.
    """

    cluster: Cluster
    objects: ClusterObjects
    unreadable: UnreadableObjects
    graph: Callable[[], RuleGraph]
    recorder: EventRecorder
    metrics: Counters
    troubled: Callable[[RuleGraph, CelError], None]
    now: Callable[[], int]
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class MigrationDriver:
    """All migrations of a cluster. `changed` is called whenever something may be to be done."""

    def __init__(self, site: MigrationSite, changed: Callable[[], None]) -> None:
        self._site = site
        self.jobs = MigrationJobs(site.cluster, site.unreadable, changed)
        self.pods = PodIndex(site.objects)
        evictor = MigrationEvictor(site.cluster, site.clock, site.sleep)
        self._steps = MigrationSteps(
            MigrationHost(site.cluster, site.objects, self.jobs, evictor, site.now, self._tell, self._moved)
        )
        workloads = WorkloadFinder(site.cluster, site.clock)
        self._arbitration = Arbitration(
            site.objects, self.jobs, self.pods, workloads, site.now, self._steps.pod_of
        )
        self._rules: MigrationRules | None = None
        self._remembered = False
        self._swept_at = 0.0

    def status(self) -> dict[str, int]:
        """How many jobs there are by phase."""
        found: dict[str, int] = {}
        for job in self.jobs.every():
            phase = job.phase or "Pending"
            found[phase] = found.get(phase, 0) + 1
        return found

    def going(self, namespace: str) -> list[PodView]:
        """The pods of a namespace that are to go, and are there still."""
        found = []
        for job in self.jobs.every():
            pod = self._site.objects.pods.get(job.pod) if job.pod[0] == namespace and not job.done else None
            if pod is not None and not pod.terminating and job.pod_uid in ("", pod.uid):
                found.append(PodView(pod, {}))
        return found

    def migrates(self, pod: PodKey) -> bool:
        """Whether a pod is being migrated."""
        return any(not one.done for one in self.jobs.of_pod(pod))

    async def migrate(
        self, move: Move, profile: ProfileRules, check: Check = always
    ) -> tuple[EvictionResult, str]:
        """Make a job for a pod that is to go; what came of it, and why there is none. Raises what `check` raises."""
        graph = self._site.graph()
        rules = self.rules_of(graph)
        if rules is None or not rules.enabled:
            return EvictionResult.FAILED, "the kind Migration carries no migrations out"
        job = await self._arbitration.job_for(move, rules, graph, profile)
        if isinstance(job, Stays):
            return EvictionResult.REFUSED, f"{job.condition}: {job.reason}"
        check()  # its workload may have been read meanwhile
        try:
            await self.jobs.create(job)
        except AlreadyExists:
            return EvictionResult.REFUSED, "migrating: it is being migrated already"
        except NotFound:
            return EvictionResult.FAILED, "the cluster does not know PodMigrationJobs: apply deploy/crds"
        except (KubeError, ObjectError) as error:
            LOG.warning("pod %s stays on %s: %s", "/".join(move.pod.key), move.node, error)
            return EvictionResult.FAILED, str(error)
        return EvictionResult.MIGRATING, ""

    def forget(self) -> None:
        """Whoever led meanwhile has let pods go: the next look counts by what jobs tell."""
        self._remembered = False

    async def look(self, rules: MigrationRules, graph: RuleGraph) -> None:
        """One look at all jobs, where policy has them carried out; none begins or goes on once another revision decides otherwise.

        What nobody carries out any more, of whichever revision it is, ends when its time is over, so that nothing pends for ever.
        """
        if not self._remembered:
            self._steps.remember(self.jobs.every(), rules)
            self._remembered = True
        standing = StandingGraph(graph, self._site.graph)
        if rules.enabled:
            self._steps.follow(rules)
            await self._carry_out(rules, graph, standing)
        if not standing.stands:
            return
        await self.end_late(_WAITED if rules.enabled else _SWITCHED_OFF, begun=not rules.enabled)
        if self._site.clock() - self._swept_at >= rules.sweep_interval:
            self._swept_at = self._site.clock()
            for job in [one for one in self.jobs.every() if one.ours]:
                await self._guarded(job, self._steps.sweep(job, rules))
        for phase in _PHASES:
            count = sum((one.phase or "Pending") == phase for one in self.jobs.every())
            self._site.metrics.set("koordpolicy_descheduler_migrations", count, phase=phase)

    async def end_late(self, held: str, *, begun: bool) -> None:
        """End jobs whose time is over and that nobody takes further, as `held` says; with `begun` those that have begun, too."""
        for job in self.jobs.every():
            if job.done:
                await self._guarded(job, self._steps.clean(job))
            elif begun or not (job.passed or job.phase == "Running"):
                await self._guarded(job, self._steps.give_up_late(job, held))

    async def _carry_out(self, rules: MigrationRules, graph: RuleGraph, standing: StandingGraph) -> None:
        try:
            released = await self._arbitration.round(rules, graph)
        except KubeError as error:
            LOG.warning("no migration begins for now: %s", error)
            released = []
        for one in released:
            if not standing.stands:
                return
            await self._guarded(one.job, self._release(one))
        for job in self.jobs.every():
            if not standing.stands:
                return
            if job.ours and not (job.done or job.paused) and (job.passed or job.phase == "Running"):
                await self._guarded(job, self._steps.take(job, rules, graph))

    async def _release(self, one: Released) -> None:
        if one.forbidden is None:
            await self.jobs.patch(one.job, {"metadata": {"annotations": dict(one.annotations)}})
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
            self._site.metrics.add("koordpolicy_internal_errors_total", place="migration")

    def rules_of(self, graph: RuleGraph) -> MigrationRules | None:
        """How policy has pods migrated; None where it cannot say."""
        if self._rules is None or self._rules.digest != graph.digest:
            try:
                self._rules = MigrationRules(graph)
            except CelError as error:
                self._site.troubled(graph, error)
                self._rules = None
        return self._rules

    def _tell(self, about: Object, reason: str, message: str, bad: bool) -> None:
        self._site.recorder.record(
            about, reason, message, type="Warning" if bad else "Normal", action="Migrating"
        )

    def _moved(self, strategy: str, result: str) -> None:
        self._site.metrics.add("koordpolicy_descheduler_evictions_total", strategy=strategy, result=result)
