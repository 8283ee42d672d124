"""The descheduler as a process: every replica listens, the one that leads lets pods go."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from koordpolicy.cluster.event_handlers import EVERY_RESOURCE, ClusterListener, EventHandlers
from koordpolicy.cluster.listeners import Listeners
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.relocation import Relocations
from koordpolicy.cluster.watch import ClusterWatch
from koordpolicy.descheduler.evictor import EvictionResult, Evictor
from koordpolicy.descheduler.migration.controller import MigrationController
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.round import Memories, RoundReport, run_round, why_nothing_moves
from koordpolicy.descheduler.rules import KIND, ProfileRules
from koordpolicy.descheduler.snapshot import movable_pod_records, snapshot_of
from koordpolicy.descheduler.under_way import RoundSuperseded, RoundUnderWay, StandingGraph
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import Component
from koordpolicy.model.time import time_text
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.component import (
    ComponentOptions,
    RunningComponent,
    Settings,
    running_component,
)
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.process import CannotFinish, Process, Tasks
from koordpolicy.runtime.slices import in_slices

LOG: Final = logging.getLogger(__name__)

NAME: Final = "descheduler"
LEASE: Final = "koordpolicy-descheduler"
WATCHED: Final = EVERY_RESOURCE
"""Whether a pod ends better elsewhere depends on all that a scheduler hears of."""
_LEAST: Final = 1.0
"""Seconds between two rounds of a profile at least, whatever policy says."""
_GLANCE: Final = 0.1
"""Seconds between two looks at whether the policies of one round are any good."""
_LOOK: Final = 5.0
"""Seconds after which policy is asked again for intervals, where no round is due."""


class FollowingRelocations(Relocations, ClusterListener, Protocol):
    """`Relocations` that hear of the cluster."""

    def follow(self, graph: RuleGraph) -> bool:
        """Answer by another revision; whether that can be done without hearing of the cluster anew."""


Relocating = Callable[[RuleGraph, Callable[[], int]], FollowingRelocations]
"""Makes them for a revision and a clock in nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class DeschedulerSettings:
    """How the descheduler runs: by one `profile` alone, or by all (empty); `dry_run`: it lets nobody go, and says who would;
    `once`: told what one round of each profile found, it ends. `relocating` makes what is asked whether pods end better elsewhere.
    """

    relocating: Relocating
    profile: str = ""
    dry_run: bool = False
    once: Callable[[RoundReport], None] | None = None


async def run_descheduler(process: Process, settings: Settings, how: DeschedulerSettings) -> None:
    """Run until the process is told to stop, or one round is over. Raises `CannotStart`, and `CannotFinish` for one round."""
    process.readiness.wait_for("cluster", "the cluster's objects have not been read yet")
    options = ComponentOptions(reports=how.once is None, writes=not how.dry_run)
    async with running_component(process, settings, options) as component:
        live = component.live
        policies = live.ready.wait() if how.once is None else _first_policies(live)
        if not await process.before_stop(policies):
            return
        descheduler = Descheduler(component, how)
        process.status.add(descheduler.status)
        async with Tasks() as tasks:
            await descheduler.run(tasks)


async def _first_policies(live: LivePolicies) -> None:
    """Wait for policies to decide. Raises `CannotFinish` once it is known that they are no good: none others are waited for."""
    while not live.ready.is_set():
        if live.rejected is not None:
            raise CannotFinish(
                f"the policies decide nothing: {live.rejected.message}; {live.rejected.remedy}"
            )
        if live.trouble is not None:
            raise CannotFinish(f"{live.origin} gives no policies: {live.trouble.message}")
        with suppress(TimeoutError):
            async with asyncio.timeout(_GLANCE):
                await live.ready.wait()


class Descheduler:
    """The rounds of all profiles, and what they look at."""

    def __init__(self, component: RunningComponent, how: DeschedulerSettings) -> None:
        self._component = component
        self._how = how
        self.objects = ClusterObjects()
        self._migrations = MigrationController(component, self.objects)
        self._listeners = Listeners(self.objects)
        self._relocations: FollowingRelocations | None = None
        handlers = self._handlers = EventHandlers(
            self._listeners,
            unreadable=component.unreadable,
            wanted=WATCHED,
            after=self._migrations.pods.changed,
        )
        self._watch = ClusterWatch(component, handlers, last={resources.NODE_METRICS})
        self._memories = Memories(impatient=how.once is not None)
        self._records = movable_pod_records()
        self._evictor = Evictor(component.cluster, self.objects, monotonic, self._told, self._migrations)
        self._due: dict[str, float] = {}
        self._last: dict[str, dict[str, Any]] = {}
        self._under_way: RoundUnderWay | None = None
        self._dropped: dict[str, Any] | None = None

    async def run(self, tasks: Tasks) -> None:
        """Listen, and stand for election; or do one round of each profile."""
        process = self._component.process
        self._watch.start(tasks)
        self._migrations.start(tasks)
        if self._how.once is None:
            tasks.start("lead", self._component.leadership.run(LEASE, self._lead))
            await process.stopped()
        elif await process.before_stop(self._watch.synced()):
            await process.before_stop(self._once(self._how.once))

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        return {
            "nodes": len(self.objects.nodes),
            "pods": len(self.objects.pods),
            "dryRun": self._how.dry_run,
            "round": None if self._under_way is None else self._under_way.status(),
            "rounds": self._last,
            "droppedRound": self._dropped,
            "migrations": self._migrations.status(),
        }

    async def _once(self, show: Callable[[RoundReport], None]) -> None:
        await self._migrations.synced()
        for name in self._profiles(self._component.live.graph):
            try:
                report = await self._round(name)
            except RoundSuperseded:
                raise CannotFinish("the policies changed during the round; start it again") from None
            if report is not None:
                show(report)

    async def _lead(self) -> None:
        await self._watch.synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._rounds())
            if not self._how.dry_run:
                group.create_task(self._migrations.run())

    async def _rounds(self) -> None:
        await self._migrations.synced()
        self._due.clear()
        while True:
            graph = self._component.live.graph
            names = self._profiles(graph)
            for name in names:
                if monotonic() < self._due.get(name, 0.0):
                    continue
                began = monotonic()
                if not await self._guarded(name):
                    break  # the profiles of the revision that decides now, at once
                self._due[name] = began + self._interval(name)
            await asyncio.sleep(self._pause(names))

    def _profiles(self, graph: RuleGraph) -> list[str]:
        return [one for one in graph.subjects(KIND) if self._how.profile in ("", one)]

    def _interval(self, name: str) -> float:
        try:
            interval: float = ProfileRules(self._component.live.graph, name).interval
        except CelError:
            return _LOOK
        return max(_LEAST, interval)

    def _pause(self, names: list[str]) -> float:
        """Seconds until the next round, in which policy may change its mind."""
        due = min((self._due[name] for name in names if name in self._due), default=monotonic() + _LOOK)
        return min(max(due - monotonic(), 0.0), _LOOK)

    async def _guarded(self, name: str) -> bool:
        """A round of a profile, whatever comes of it; false where it was dropped."""
        metrics = self._component.process.metrics
        try:
            await self._round(name)
        except RoundSuperseded:
            return False
        except Exception:
            LOG.exception("a round of %s failed: internal error, please report", name)
            metrics.add("koordpolicy_internal_errors_total", place="descheduling")
        return True

    async def _round(self, name: str) -> RoundReport | None:
        """One round of a profile; None where policy cannot tell of it as a whole. Raises `RoundSuperseded` once that is told."""
        component, began = self._component, monotonic()
        metrics, graph = component.process.metrics, component.live.graph
        revision, target = component.revision_of(graph.digest), f"{KIND}/{name}"
        try:
            rules = ProfileRules(graph, name)
        except CelError as error:
            component.counts.add(target, revision, failed=True)
            component.troubles.add(target, graph.digest, str(error), example=f"profile {name}")
            metrics.add("koordpolicy_descheduler_rounds_total", profile=name, result="failed")
            return None
        asked = (
            (Component.DESCHEDULER, Component.SCHEDULER)
            if _asks_scheduler(rules)
            else (Component.DESCHEDULER,)
        )
        standing = StandingGraph(graph, lambda: component.live.graph, asked)
        under_way = self._under_way = RoundUnderWay(name, revision, now_ns(), standing)
        try:
            return await self._round_by(rules, graph, under_way, began)
        except RoundSuperseded:
            self._drop(under_way)
            raise
        finally:
            self._under_way = None

    def _drop(self, under_way: RoundUnderWay) -> None:
        """Tell of a round that is dropped."""
        component, left = self._component, under_way.left()
        by = component.revision_of(component.live.graph.digest)
        LOG.warning(
            "the round of %s by revision %s is dropped, since %s decides now: %s",
            under_way.profile, under_way.revision, by, left,
        )  # fmt: skip
        component.process.metrics.add(
            "koordpolicy_descheduler_rounds_total", profile=under_way.profile, result="dropped"
        )
        at = time_text(now_ns())
        self._dropped = {**under_way.status(), "droppedAt": at, "supersededBy": by, "left": left}

    async def _round_by(
        self, rules: ProfileRules, graph: RuleGraph, under_way: RoundUnderWay, began: float
    ) -> RoundReport:
        component, standing, name = self._component, under_way.standing, rules.name
        metrics = component.process.metrics
        relocations = await self._asked(rules, graph)
        snapshot = await in_slices(
            standing.while_it_stands(snapshot_of(self.objects, graph.catalogue, now_ns(), self._records))
        )
        report = await in_slices(
            standing.while_it_stands(
                run_round(
                    rules, snapshot, graph.catalogue, self._memories, self._evictor.allowed, relocations
                )
            )
        )
        under_way.found = len(report.moves)
        component.counts.add(f"{KIND}/{name}", under_way.revision)
        for _ in report.failed:
            metrics.add("koordpolicy_internal_errors_total", place="descheduling")
        metrics.observe("koordpolicy_descheduler_round_seconds", monotonic() - began)
        results = await self._evictor.carry_out(
            report.moves, rules, dry=self._how.dry_run, check=standing.check
        )
        metrics.add(
            "koordpolicy_descheduler_rounds_total", profile=name, result="idle" if report.idle else "done"
        )
        self._last[name] = {
            "nodes": report.nodes,
            "pods": report.pods,
            "nothingMoves": why_nothing_moves(report),
            "endNoBetter": len(report.kept),
            **{str(one): results.count(one) for one in EvictionResult if one in results},
        }
        return report

    async def _asked(self, rules: ProfileRules, graph: RuleGraph) -> Relocations | None:
        """Who is asked whether pods end better elsewhere; None where policy does not want to know. What that takes is had from the
        first round on that needs it.
        """
        if not _asks_scheduler(rules):
            return None
        found = self._relocations
        if found is None or not found.follow(graph):
            self._relocations = found = self._how.relocating(graph, now_ns)
            self._listeners.listeners = (self.objects, found)
            await in_slices(self._handlers.repeat(found))
        return found

    def _told(self, move: Move, result: EvictionResult, said: str) -> None:
        pod = "/".join(move.pod.key)
        if (under_way := self._under_way) is not None:
            under_way.told += 1
            under_way.evicted += result is EvictionResult.EVICTED
            under_way.migrating += result is EvictionResult.MIGRATING
        metrics, recorder = self._component.process.metrics, self._component.recorder
        metrics.add("koordpolicy_descheduler_evictions_total", strategy=move.strategy, result=str(result))
        if result is EvictionResult.EVICTED:
            LOG.info("pod %s leaves %s by %s: %s", pod, move.node, move.strategy, move.reason)
            message = f'Pod evicted from node "{move.node}" by the reason "{move.reason}"'
            recorder.record(move.pod.raw, "Descheduled", message, action="Migrating")
        elif result is EvictionResult.MIGRATING:
            LOG.info("pod %s is to leave %s by %s: %s", pod, move.node, move.strategy, move.reason)
        elif result is EvictionResult.DRY_RUN:
            LOG.info("dry run: pod %s would leave %s by %s: %s", pod, move.node, move.strategy, move.reason)
        elif result is EvictionResult.REFUSED:
            message = f"Pod stays on node {move.node}, which {move.strategy} would have it leave: {said}"
            recorder.record(move.pod.raw, "NotDescheduled", message, type="Warning", action="Migrating")


def _asks_scheduler(rules: ProfileRules) -> bool:
    """Whether a round asks a scheduler where pods would end."""
    return any(one.may_ask_scheduler for one in rules.strategies)
