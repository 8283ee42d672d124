"""The scheduler as a process: a profile at work on a real cluster, on the replica that leads.

Every replica listens, so that the one that takes over knows the cluster already; only the leader decides.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube import Object, Resource
from koordpolicy.kube.resources import PODS
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import Component, Settings, Wishes, surroundings
from koordpolicy.runtime.live import Active, Unfit
from koordpolicy.runtime.process import Process, Tasks
from koordpolicy.runtime.watching import Watching
from koordpolicy.scheduler.feed import Feed
from koordpolicy.scheduler.loop import SchedulingLoop, Settled
from koordpolicy.scheduler.profile import ProfileError, profile_of
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE, Scheduler

LOG: Final = logging.getLogger(__name__)

NAME: Final = "scheduler"
LEASE: Final = "koordpolicy-scheduler"

_RUNNING_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
_DRAIN: Final = 10.0
"""Seconds that writes on their way are given when the process stops or leads no more."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What this scheduler does: for pods of which profile, with how many writes on their way at most."""

    profile: str = DEFAULT_PROFILE
    in_flight: int = 256


async def run_scheduler(process: Process, settings: Settings, choice: Choice = Choice()) -> None:
    """Run until the process is told to stop. Raises `CannotStart`."""
    running: Running | None = None

    def more() -> Mapping[str, Any]:
        return {} if running is None else running.status()

    def prepare(graph: RuleGraph) -> None:
        try:
            profile_of(graph, choice.profile)
        except ProfileError as problem:
            raise Unfit(str(problem)) from None

    process.readiness.wait_for("cluster", "the cluster's objects have not been read yet")
    async with surroundings(process, settings, Wishes(prepare=prepare, more=more)) as component:
        if not await _has_policies(component):
            return
        async with Tasks() as tasks:
            running = Running(component, choice)
            running.start(tasks)
            await process.stopped()


async def _has_policies(component: Component) -> bool:
    """Wait for the first revision; false when the process is told to stop before."""
    waits = [asyncio.create_task(one) for one in (component.live.ready.wait(), component.process.stopped())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for one in waits:
        one.cancel()
    return not component.process.stopping


class Running:
    """The scheduler with what it hears and what it says."""

    def __init__(self, component: Component, choice: Choice) -> None:
        self._component = component
        self._choice = choice
        self._metrics = component.process.metrics
        self._leading = False
        self.scheduler = Scheduler(
            component.live.graph,
            now_ns,
            profile=choice.profile,
            draw=component.draw,
            explained=0,
            refusals=False,
        )
        self.loop = SchedulingLoop(
            self.scheduler,
            component.cluster,
            now_ns,
            component.backoff(initial=0.1, longest=2.0),
            in_flight=choice.in_flight,
            on_settled=self._settled,
        )
        self.feed = Feed(self.scheduler, wake=self.loop.wake, on_trouble=self._malformed)
        backoff = component.backoff(longest=15.0)
        self._watching = tuple(
            Watching(
                component.cluster,
                resource,
                mirror,
                backoff,
                field_selector=_RUNNING_PODS if resource is PODS else "",
            )
            for resource, mirror in self.feed.mirrors.items()
        )

    def start(self, tasks: Tasks) -> None:
        """Listen, and stand for election."""
        for watching in self._watching:
            tasks.start(f"watch {watching.resource}", watching.run())
        tasks.start("ready", self._heard_all())
        tasks.start("lead", self._component.lead(LEASE, self._lead))

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        return {
            "leading": self._leading,
            "profile": self._choice.profile,
            "nodes": len(self.scheduler.cache),
            "pods": self.scheduler.cache.pod_count,
            "pending": sum(1 for _ in self.scheduler.pending),
            "writing": self.loop.writing,
        }

    async def _heard_all(self) -> None:
        for watching in self._watching:
            await watching.settled.wait()
        self._component.process.readiness.reached("cluster")

    async def _lead(self) -> None:
        await self._heard_all()
        end = self._component.live.subscribe(self._changed)
        self._leading = True
        try:
            await self.loop.run()
        finally:
            self._leading = False
            end()
            await self.loop.drain(_DRAIN)

    def _changed(self, active: Active) -> None:
        """Another revision decides."""
        if active.graph.digest != self.scheduler.profile.digest:
            self.scheduler.replace_graph(active.graph)
            self.loop.wake()

    def _malformed(self, resource: Resource, obj: Object, problem: ObjectError) -> None:
        metadata = obj["metadata"]
        name = f"{metadata.get('namespace', '')}/{metadata['name']}".lstrip("/")
        LOG.warning("%s %s is passed over: %s", resource, name, problem)
        self._metrics.add("koordpolicy_scheduler_malformed_total", resource=str(resource))

    def _settled(self, settled: Settled) -> None:
        """Count a decision, and tell people of it."""
        decision, outcome = settled.decision, settled.outcome
        result = "error" if decision.problem else "unschedulable"
        if decision.placed:
            result = "scheduled" if outcome is None or outcome.error is None else "bind_failed"
        self._metrics.add("koordpolicy_scheduler_attempts_total", result=result)
        self._component.counts.add(
            f"SchedulingProfile/{self._choice.profile}", decision.digest, failed=bool(decision.problem)
        )
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": _identity(settled)}
        recorder = self._component.recorder
        if result == "scheduled":
            message = f"Successfully assigned {'/'.join(decision.pod)} to {decision.node}"
            recorder.record(about, "Scheduled", message, action="Binding")
        elif result == "bind_failed":
            assert outcome is not None
            recorder.record(about, "FailedBinding", str(outcome.error), type="Warning", action="Binding")
        else:
            recorder.record(about, "FailedScheduling", decision.message, type="Warning", action="Scheduling")
        if decision.preemption is not None and (outcome is None or outcome.error is None):
            for victim in decision.preemption.victims:
                gone = {"namespace": victim.pod[0], "name": victim.pod[1], "uid": victim.uid}
                message = f"Preempted by pod {decision.uid} on node {decision.preemption.node}"
                one = {"apiVersion": "v1", "kind": "Pod", "metadata": gone}
                recorder.record(one, "Preempted", message, action="Preempting")


def _identity(settled: Settled) -> dict[str, str]:
    namespace, name = settled.decision.pod
    return {"namespace": namespace, "name": name, "uid": settled.decision.uid}
