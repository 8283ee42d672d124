"""The scheduler as a process: a profile at work on a real cluster, deciding itself or beside kube-scheduler.

Every replica listens, so that the one that takes over knows the cluster already; only the leader decides. As an
extender every replica answers.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.table import NodeTable
from koordpolicy.runtime.clock import monotonic_ns, now_ns, processor_ns
from koordpolicy.runtime.component import ComponentOptions, RunningComponent, Settings, running_component
from koordpolicy.runtime.http.serving import Endpoint, serve
from koordpolicy.runtime.policies.gating import RolloutStage
from koordpolicy.runtime.policies.live import Unfit
from koordpolicy.runtime.process import Process, Tasks
from koordpolicy.runtime.workqueue import WorkQueue
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.decision_log import PlacementLog
from koordpolicy.scheduler.decision_reporter import EVENTS, Audience, DecisionReporter
from koordpolicy.scheduler.decision_times import DecisionTimes, SlowRules
from koordpolicy.scheduler.device_metrics import DeviceMetrics
from koordpolicy.scheduler.diagnosing import Diagnosing
from koordpolicy.scheduler.driver import Action, Settled
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.extender.server import MEMORY, ExtenderServer, limits_of
from koordpolicy.scheduler.extender.steps import OWN, restricted_to
from koordpolicy.scheduler.job_metrics import JobMetrics
from koordpolicy.scheduler.loop import IN_FLIGHT, SchedulingLoop
from koordpolicy.scheduler.network_status import NetworkStatus
from koordpolicy.scheduler.pod_group_status import PodGroupStatus
from koordpolicy.scheduler.profile import ProfileError
from koordpolicy.scheduler.quota_upkeep import QuotaUpkeep
from koordpolicy.scheduler.reservation_metrics import ReservationMetrics
from koordpolicy.scheduler.reservation_status import reservation_reference
from koordpolicy.scheduler.reservation_upkeep import ReservationUpkeep
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE, Ahead, OnDecided, Scheduler
from koordpolicy.scheduler.shadow import Observed, PlacementShadow
from koordpolicy.scheduler.shards import Shard
from koordpolicy.scheduler.tracing import DecisionSpans
from koordpolicy.scheduler.watched import follow_policies, watch

LOG: Final = logging.getLogger(__name__)

NAME: Final = "scheduler"
LEASE: Final = "koordpolicy-scheduler"
EXTENDER_LEASE: Final = "koordpolicy-extender"

_DRAIN: Final = 10.0
"""Seconds that requests on their way are given when the process stops or leads no more."""


_COUNT: Final = 5.0
"""Seconds after which the pods that wait are counted again."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What this scheduler does: for pods of which profile, with how many writes on their way at most.

    With `extender` it answers kube-scheduler there instead, about the profile's `steps`; `extender_memory` is in bytes. With
    `shard`, which of how many, it places pods on its share of the nodes alone.
    """

    profile: str = DEFAULT_PROFILE
    in_flight: int = IN_FLIGHT
    extender: Endpoint | None = None
    steps: str = OWN
    shard: tuple[int, int] | None = None
    extender_memory: int = MEMORY

    def role(self) -> Role:
        """Its part beside others."""
        return Role(
            (lambda profile: profile) if self.extender is None else restricted_to(self.steps),
            None if self.shard is None else Shard(*self.shard),
        )


async def run_scheduler(process: Process, settings: Settings, choice: Choice = Choice()) -> None:
    """Run until the process is told to stop. Raises `CannotStart`."""

    def prepare(graph: RuleGraph) -> None:
        try:
            choice.role().profile(graph, choice.profile)
        except ProfileError as problem:
            raise Unfit(str(problem)) from None

    process.readiness.wait_for("cluster", "the cluster's objects have not been read yet")
    options = ComponentOptions(prepare=prepare, events=EVENTS)
    async with running_component(process, settings, options) as component:
        if not await process.before_stop(component.live.ready.wait()):
            return
        async with Tasks() as tasks:
            if choice.extender is None:
                running = Running(component, choice)
                process.status.add(running.status)
                running.start(tasks)
                await process.stopped()
            else:
                answering = Answering(component, choice)
                process.status.add(answering.status)
                await answering.run(tasks, choice.extender)


def _lease(choice: Choice) -> str:
    return LEASE if choice.shard is None else f"{LEASE}-{choice.shard[0]}-of-{choice.shard[1]}"


def _scheduler(component: RunningComponent, choice: Choice, *, diagnosing: bool) -> Scheduler:
    return Scheduler(
        component.live.graph,
        now_ns,
        profile=choice.profile,
        draw=component.draw,
        explained=0,
        refusals=False,
        diagnosing=diagnosing,
        role=choice.role(),
    )


def _log(component: RunningComponent, choice: Choice) -> PlacementLog | None:
    """The log of this profile's decisions, where an operator wants one."""
    if component.log is None:
        return None
    return PlacementLog(
        component.log, choice.profile, lambda digest: _graph_of(component, digest), component.revision_of
    )


def _observed(component: RunningComponent) -> Observed | None:
    """Who wants placements by the candidate of a rollout too, and its graph."""
    stage, candidate = component.live.stage, component.live.candidate
    if stage is None or candidate is None or stage.observer is None:
        return None
    return stage.observer, candidate.graph.at(Timestamp(now_ns()))


def _ahead(component: RunningComponent) -> Ahead | None:
    """The revision of a rollout and the pods that it places by now."""
    stage, candidate = component.live.stage, component.live.candidate
    if stage is None or candidate is None or stage.pods is None:
        return None
    return candidate.graph.at(Timestamp(now_ns())), stage.pods


def _graph_of(component: RunningComponent, digest: str) -> RuleGraph:
    """The candidate's graph where it is that one's digest, else the one that decides."""
    candidate = component.live.candidate
    if candidate is not None and candidate.graph.digest == digest:
        return candidate.graph.at(Timestamp(now_ns()))
    return component.live.graph


def _each_of(hears: Sequence[OnDecided]) -> OnDecided:
    def decided(cycle: Cycle, evaluation: Evaluation | None, table: NodeTable, decision: PodDecision) -> None:
        for one in hears:
            one(cycle, evaluation, table, decision)

    return decided


class Running:
    """The scheduler with what it hears and what it says."""

    def __init__(self, component: RunningComponent, choice: Choice) -> None:
        self._component = component
        self._choice = choice
        self.scheduler = _scheduler(component, choice, diagnosing=True)
        log = _log(component, choice)
        self.shadow = PlacementShadow(
            lambda: _observed(component),
            choice.profile,
            choice.role(),
            keep=self.scheduler.keep_facts,
            kept=lambda: self.scheduler.kept_facts,
            deciding=lambda: self.scheduler.profile,
            clock=monotonic_ns,
        )
        hears = [self.shadow.decided] if log is None else [log.decided, self.shadow.decided]
        self.scheduler.on_decided = _each_of(hears)
        self.scheduler.ahead = lambda: _ahead(component)
        metrics = component.process.metrics
        reporter = DecisionReporter(
            Audience(
                metrics, component.counts, component.troubles, component.recorder, component.revision_of
            ),
            lambda digest: _graph_of(component, digest),
            choice.profile,
            log,
            lambda: self.scheduler.gangs is not None,
            self.scheduler.cache.state.pod_groups.unheeded,
        )
        tracing = component.tracing
        spans = (
            None if tracing is None else DecisionSpans(tracing, choice.profile, component.revision_of, now_ns)
        )
        times = DecisionTimes(metrics)
        slow = SlowRules(self.scheduler, component.troubles, processor_ns)

        def timed(action: Action, seconds: float) -> None:
            times.add(seconds)
            slow.decided(action.pod, seconds)
            if spans is not None:
                spans.timed(action, seconds)

        def settled(one: Settled) -> None:
            reporter.settled(one)
            if spans is not None:
                spans.settled(one)

        self.loop = SchedulingLoop(
            self.scheduler,
            component.cluster,
            now_ns,
            component.backoff(initial=0.1, longest=2.0),
            in_flight=choice.in_flight,
            on_settled=settled,
            on_failure=lambda _: metrics.add("koordpolicy_internal_errors_total", place="write"),
            on_timed=timed,
        )
        self._diagnosing = Diagnosing(
            self.scheduler,
            self.loop,
            on_told=reporter.told,
            on_evaluated=reporter.evaluated,
            on_failure=lambda _: metrics.add("koordpolicy_internal_errors_total", place="diagnosis"),
        )
        self._pod_groups = PodGroupStatus(self.scheduler, component.cluster, now_ns)
        self._pod_group_queue = WorkQueue(
            "podgroups",
            metrics,
            component.backoff(initial=0.5, longest=60.0),
            self._pod_groups.retry_after,
        )
        self._upkeep = QuotaUpkeep(
            lambda: self.scheduler.cache.state.quotas,
            component.cluster,
            now_ns,
            lambda place: metrics.add("koordpolicy_internal_errors_total", place=place),
        )
        self._job_metrics = JobMetrics(
            metrics, lambda: self.scheduler.gangs, lambda: self.scheduler.cache.state.quotas
        )
        self._reservation_metrics = ReservationMetrics(
            metrics, lambda: self.scheduler.cache.state.reservations
        )
        self._device_metrics = DeviceMetrics(metrics, lambda: self.scheduler.cache.state.cards)
        self._reservations = ReservationUpkeep(
            lambda: self.scheduler.cache,
            component.cluster,
            now_ns,
            lambda place: metrics.add("koordpolicy_internal_errors_total", place=place),
            lambda one, reason, message: component.recorder.record(
                reservation_reference(one), reason, message
            ),
        )
        self._watch = watch(component, self.scheduler, self._heard)

    def start(self, tasks: Tasks) -> None:
        """Listen, and stand for election."""
        self._watch.start(tasks)
        tasks.start("count", self._count())
        tasks.start("lead", self._component.leadership.run(_lease(self._choice), self._lead))

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        shard = self._choice.shard
        return {
            "profile": self._choice.profile,
            **({} if shard is None else {"shard": f"{shard[0]}/{shard[1]}"}),
            "nodes": len(self.scheduler.cache),
            "pods": self.scheduler.cache.pod_count,
            "pending": sum(1 for _ in self.scheduler.pending),
            "writing": self.loop.writing,
            "waitingForClaims": self.loop.awaiting_claims,
            "waitingForPermits": len(self.scheduler.ledger.waiting),
            "toAdvise": self.scheduler.diagnosis.waiting,
            **({"plugins": shown} if (shown := self.scheduler.plugins) else {}),
        }

    def _heard(self) -> None:
        """Something happened in the cluster."""
        for name in self._pod_groups.changed():
            self._pod_group_queue.add(name)
        self.loop.wake()

    async def _count(self) -> None:
        """Show how many pods wait, and how gangs and quotas stand, again and again until cancelled."""
        metrics = self._component.process.metrics
        while True:
            for queue, count in self.scheduler.waiting.items():
                metrics.set("koordpolicy_scheduler_pending_pods", count, queue=queue)
            try:
                await self._job_metrics.look()
                await self._reservation_metrics.look()
                self._device_metrics.look()
            except Exception:
                LOG.exception("gangs, quotas and devices are not counted: internal error, please report")
                metrics.add("koordpolicy_internal_errors_total", place="metrics")
            await asyncio.sleep(_COUNT)

    async def _lead(self) -> None:
        await self._watch.synced()
        end = follow_policies(self._component, self.scheduler, self.loop.wake)
        self.shadow.begun()
        unobserved = self._component.live.subscribe_stage(self._staged)
        try:
            async with Tasks() as tasks:
                tasks.start("diagnose", self._diagnosing.run())
                tasks.start("network", NetworkStatus(self.scheduler, self._component.cluster).run())
                for name in self._pod_groups.everything():
                    self._pod_group_queue.add(name)
                workers = self._pod_groups.workers()
                tasks.start("podgroups", self._pod_group_queue.run(self._pod_groups.reconcile, workers))
                tasks.start("report on quotas", self._upkeep.report())
                tasks.start("revoke of quotas", self._upkeep.revoke())
                tasks.start("status of reservations", self._reservations.run())
                tasks.start("removal of reservations", self._reservations.remove())
                await self.loop.run()
        finally:
            unobserved()
            end()
            await self.loop.drain(_DRAIN)

    def _staged(self, _: RolloutStage | None) -> None:
        self.shadow.begun()
        self.loop.wake()


class Answering:
    """The extender with what it hears."""

    def __init__(self, component: RunningComponent, choice: Choice) -> None:
        self._component = component
        self._choice = choice
        self.scheduler = _scheduler(component, choice, diagnosing=False)
        self._watch = watch(component, self.scheduler, self._heard)
        self._server = ExtenderServer(
            self.scheduler,
            self._watch.pod,
            component.cluster,
            component.process.metrics,
            memory=choice.extender_memory,
            log=_log(component, choice),
        )

    async def run(self, tasks: Tasks, endpoint: Endpoint) -> None:
        """Listen and answer until the process is told to stop."""
        self._watch.start(tasks)
        end = follow_policies(self._component, self.scheduler, self._heard)
        # Someone has to speak for all of them where only one may, in reports.
        tasks.start("lead", self._component.leadership.run(EXTENDER_LEASE, _for_ever))
        tasks.start("answer", self._when_ready())
        process = self._component.process
        async with AsyncExitStack() as stack:
            server = await serve(
                stack,
                endpoint,
                self._server.routes(),
                process.metrics,
                reviews=self._component.reviews,
                limits=limits_of(self._choice.extender_memory),
            )
            LOG.info("kube-scheduler is answered on %s:%d", endpoint.host, server.port)
            await process.stopped()
        end()

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        profile = self.scheduler.profile
        return {
            "answering": self._server.ready,
            "profile": self._choice.profile,
            "filters": [step.name for step in profile.filters],
            "scores": [step.name for step in profile.scores],
            "nodes": len(self.scheduler.cache),
            "pods": self.scheduler.cache.pod_count,
        }

    def _heard(self) -> None:
        self._server.heard()

    async def _when_ready(self) -> None:
        await self._watch.synced()
        self._server.ready = True


async def _for_ever() -> None:
    await asyncio.Event().wait()
