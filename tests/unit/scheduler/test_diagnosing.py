"""Diagnosing beside the loop: it takes its share, and everything else on the event loop has its turn."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.kube import Resource
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODES, PODS
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.runtime.watching import Watching
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.diagnosing import Diagnosing
from koordpolicy.scheduler.driver import Settled
from koordpolicy.scheduler.loop import SchedulingLoop
from tests.unit.scheduler.test_loop import node, pod
from tests.unit.scheduler.world import World, metric, policies
from tests.unit.scheduler.world import node as world_node

LOADED: dict[str, Any] = {"parameters": {"usageThresholds": {"value": {"cpu": "2%", "memory": "95%"}}}}


class Site:
    """A store, a scheduler that is fed from it, its loop, and diagnosing beside."""

    def __init__(self, *specs: Any) -> None:
        self.requests: list[tuple[str, Resource]] = []
        self.store = Store(lambda: int(time.time()))
        self.cluster = MemoryCluster(self.store, before_request=self._request)
        self.settled: list[Settled] = []
        self.told: list[Settled] = []
        self.evaluations = 0
        self.patience: list[float] = []
        """How long the first patches take."""
        backoff = Backoff(lambda: 0.0, sleep=lambda _: asyncio.sleep(0))
        self.scheduler = Scheduler(policies(*specs), time.time_ns, diagnosing=True)
        self.loop = SchedulingLoop(
            self.scheduler, self.cluster, time.time_ns, backoff, on_settled=self.settled.append
        )
        self.diagnosing = Diagnosing(
            self.scheduler, self.loop, on_told=self.told.append, on_evaluated=self._evaluated
        )
        self.handlers = EventHandlers(
            self.scheduler,
            unreadable=UnreadableObjects(lambda *found: pytest.fail(str(found))),
            after=lambda resource, change: self.loop.wake(),
        )

    async def _request(self, verb: str, resource: Resource) -> None:
        self.requests.append((verb, resource))
        await asyncio.sleep(self.patience.pop(0) if verb == "patch" and self.patience else 0)

    def _evaluated(self, count: int) -> None:
        self.evaluations += count

    @contextlib.asynccontextmanager
    async def running(self) -> Any:
        watching = [
            Watching(self.cluster, resource, mirror, Backoff(lambda: 0.0, initial=0.01))
            for resource, mirror in self.handlers.mirrors.items()
        ]
        tasks = [asyncio.create_task(one.run()) for one in watching]
        async with asyncio.timeout(30):
            for one in watching:
                await one.settled.wait()
        tasks += [asyncio.create_task(self.loop.run()), asyncio.create_task(self.diagnosing.run())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def eventually(self, done: Callable[[], bool], what: str) -> None:
        for _ in range(3_000):
            if done():
                return
            await asyncio.sleep(0.01)
        pytest.fail(f"not in time: {what}")

    def message(self, name: str) -> str:
        status = self.store.get(PODS, name, namespace="default").get("status", {})
        return "".join(one.get("message", "") for one in status.get("conditions", ()))


def test_conditions_follow_what_refuses_a_pod_though_no_event_helps_it() -> None:
    async def run() -> None:
        site = Site({"diagnosis": {"renewAfter": "100ms"}})
        taint = {"key": "key", "effect": "NoSchedule"}
        for at in range(3):
            site.store.create(NODES, {**node(f"n{at}"), "spec": {"taints": [taint]}})
        large = pod("p0")
        large["spec"]["containers"][0]["resources"] = {
            "requests": {"cpu": "99", "nvidia.com/gpu": "1"},
            "limits": {"nvidia.com/gpu": "1"},
        }
        site.store.create(PODS, large, namespace="default")
        async with site.running():
            await site.eventually(lambda: "taint" in site.message("p0"), "taints are told of")
            for at in range(3):
                site.store.update(NODES, {**site.store.get(NODES, f"n{at}"), "spec": {}})
            await site.eventually(lambda: "taint" not in site.message("p0"), "taints are told of no more")
            await site.eventually(
                lambda: "no node offers nvidia.com/gpu" in site.message("p0"), "advice is given"
            )
            assert "3 Insufficient cpu, 3 Insufficient nvidia.com/gpu" in site.message("p0")
            # From then on nothing is written any more.
            await asyncio.sleep(0.3)
            written = len(site.requests)
            await asyncio.sleep(0.5)
            assert len(site.requests) == written

    asyncio.run(run())


def test_what_is_told_never_overtakes_what_is_being_written() -> None:
    async def run() -> None:
        site = Site({"diagnosis": {"share": "100%"}})
        site.patience = [0.5]
        site.store.create(NODES, {**node("n0"), "spec": {"unschedulable": True}})
        site.store.create(PODS, pod("p0"), namespace="default")
        async with site.running():
            await site.eventually(lambda: bool(site.told), "advice is given")
            patches = [verb for verb, resource in site.requests if (verb, resource) == ("patch", PODS)]
            assert len(patches) == 2, "the refusal, and then the advice"
            await asyncio.sleep(0.6)
            assert site.message("p0").endswith("would take it if uncordoned.")

    asyncio.run(run())


SHARE = 0.1
"""What the built-in profile gives diagnosing of the time."""


class Turns:
    """How long diagnosing takes, by the clock, and how long it means to rest in between."""

    def __init__(self) -> None:
        self.spent = self.rested = 0.0
        self._begun: float | None = None
        self._last = 0.0

    def seconds(self) -> float:
        self._last = time.perf_counter()
        if self._begun is None:
            self._begun = self._last
        return self._last

    async def sleep(self, seconds: float) -> None:
        if self._begun is not None:
            self.spent += self._last - self._begun
            self._begun = None
        self.rested += seconds
        await asyncio.sleep(seconds)


@pytest.mark.parametrize("kinds", [1, 20])
def test_advice_on_many_pods_leaves_the_loop_to_others(kinds: int) -> None:
    """A thousand nodes with five thousand pods, and pods of which each takes over a hundred evaluations."""
    world = World(policies(LOADED, {"preemption": {"policy": "Never"}}), diagnosing=True)
    for at in range(1_000):
        world.scheduler.set_node(world_node(f"n{at}", {}))
        world.scheduler.set_metric(
            metric(f"n{at}", {"usage": {"cpu": 1 + at % 7, "memory": "1Gi"}}, world.now)
        )
    scheduler = world.scheduler
    for at in range(5_000):
        world.submit(f"there{at}", {"node": f"n{at % 1_000}", "request": {"cpu": "100m", "memory": "1Mi"}})
    for at in range(60):
        world.submit(f"p{at}", {"request": {"cpu": f"{1 + at % kinds}", "memory": "1Gi"}})

    turns = Turns()

    async def run() -> tuple[float, list[int]]:
        store = Store(lambda: 0)
        for at in range(60):
            store.create(PODS, pod(f"p{at}"), namespace="default")
        loop = SchedulingLoop(scheduler, MemoryCluster(store), lambda: world.now, Backoff(lambda: 0.0))
        told: list[int] = []
        diagnosing = Diagnosing(
            scheduler, loop, on_told=lambda settled: told.append(1), seconds=turns.seconds, sleep=turns.sleep
        )
        tasks = [asyncio.create_task(loop.run()), asyncio.create_task(diagnosing.run())]
        begin = last = time.perf_counter()
        longest = 0.0
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
            if len(told) == 60 or now - begin > (180 if kinds == 1 else 5):
                break
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return longest, told

    longest, told = asyncio.run(run())
    evaluations = scheduler.diagnosis.evaluations
    assert evaluations
    assert longest < 3.0, "it would come close to losing its lease"
    assert turns.spent * (1 - SHARE) <= turns.rested * SHARE * 1.001
    if kinds == 1:
        assert len(told) == 60
        assert evaluations < 200, "all pods are equal"
