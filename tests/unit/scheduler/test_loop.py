"""The loop against the in-memory cluster: everything bound once, through refusals and outages."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.kube import KubeError, Resource, Unreachable
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODES, PODS
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.runtime.watching import Watching
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.driver import Settled
from koordpolicy.scheduler.loop import ATTEMPTS, ENDING, IN_FLIGHT, SchedulingLoop
from tests.unit.scheduler.world import policies

NOW = 1_750_000_000 * 10**9


def node(name: str, pods: int = 110) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": str(pods)}
    return {"metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}}


def pod(name: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "pause",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "koord-scheduler", "containers": [container]},
    }


class World:
    """A store, the scheduler that is fed from it, and what was settled."""

    def __init__(
        self,
        before: Callable[[str, Resource], Awaitable[None]],
        *,
        sleep: Callable[[float], Awaitable[None]] = lambda _: asyncio.sleep(0),
        in_flight: int = IN_FLIGHT,
    ) -> None:
        ticks = itertools.count(NOW, 1_000_000)
        self.store = Store(lambda: NOW // 10**9)
        self.cluster = MemoryCluster(self.store, before_request=before)
        self.settled: list[Settled] = []
        backoff = Backoff(lambda: 0.0, sleep=sleep)
        # The clock goes on with each look at it, so that back-off ends without waiting.
        self.scheduler = Scheduler(policies(), lambda: next(ticks) * 100)
        self.loop = SchedulingLoop(
            self.scheduler,
            self.cluster,
            lambda: NOW,
            backoff,
            in_flight=in_flight,
            on_settled=self.settled.append,
        )
        self.handlers = EventHandlers(
            self.scheduler,
            unreadable=UnreadableObjects(lambda *found: pytest.fail(str(found))),
            after=lambda resource, change: self.loop.wake(),
        )
        self.watching = [
            Watching(self.cluster, resource, mirror, Backoff(lambda: 0.0, initial=0.01))
            for resource, mirror in self.handlers.mirrors.items()
        ]

    async def run_until(self, done: Callable[[], bool]) -> None:
        tasks = [asyncio.create_task(watching.run()) for watching in self.watching]
        async with asyncio.timeout(10):
            for watching in self.watching:
                await watching.settled.wait()
        tasks.append(asyncio.create_task(self.loop.run()))
        try:
            # A turn of the loop is as long as its time allows: on a busy machine there are more of them.
            for _ in range(20_000):
                if done() or tasks[-1].done():
                    return
                self.loop.wake()
                await asyncio.sleep(0.001)
            pytest.fail("not done in time")
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def bound(self) -> dict[str, str]:
        pods = self.store.list(PODS).items
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in pods}


async def _always(verb: str, resource: Resource) -> None:
    await asyncio.sleep(0)


def test_a_backlog_is_bound_within_capacity() -> None:
    async def run() -> None:
        world = World(_always)
        for at in range(4):
            world.store.create(NODES, node(f"n{at}", pods=10))
        for at in range(44):
            world.store.create(PODS, pod(f"p{at}"), namespace="default")
        await world.run_until(lambda: sum(map(bool, world.bound().values())) == 40)
        counts = [list(world.bound().values()).count(f"n{at}") for at in range(4)]
        assert counts == [10, 10, 10, 10]
        assert len(list(world.scheduler.pending)) == 4

    asyncio.run(run())


@pytest.mark.parametrize(
    "error", [Unreachable("gone for a moment"), KubeError("500")], ids=["away", "broken"]
)
def test_writes_that_fail_are_tried_again(error: KubeError) -> None:
    numbers = itertools.count(1)

    async def flaky(verb: str, resource: Resource) -> None:
        await asyncio.sleep(0)
        if verb == "bind" and next(numbers) % 3:
            raise error

    async def run() -> None:
        world = World(flaky)
        world.store.create(NODES, node("n0"))
        for at in range(12):
            world.store.create(PODS, pod(f"p{at}"), namespace="default")
        await world.run_until(lambda: all(world.bound().values()))
        assert set(world.bound().values()) == {"n0"}

    asyncio.run(run())


def test_a_pod_that_is_deleted_while_it_is_bound_is_forgotten() -> None:
    async def run() -> None:
        async def slow(verb: str, resource: Resource) -> None:
            await asyncio.sleep(0.01 if verb == "bind" else 0)

        world = World(slow)
        world.store.create(NODES, node("n0"))
        world.store.create(PODS, pod("p0"), namespace="default")

        def done() -> bool:
            if world.loop.writing and "p0" in world.bound():
                world.store.delete(PODS, "p0", namespace="default")
            return bool(world.settled) and not world.loop.writing and not list(world.scheduler.pending)

        await world.run_until(done)
        assert world.settled[0].outcome is not None
        assert world.settled[0].outcome.lost
        assert world.scheduler.cache.pod_count == 0

    asyncio.run(run())


def test_what_is_on_its_way_is_brought_to_its_end() -> None:
    async def run() -> None:
        async def slow(verb: str, resource: Resource) -> None:
            await asyncio.sleep(0.02 if verb == "bind" else 0)

        world = World(slow)
        world.store.create(NODES, node("n0"))
        for at in range(5):
            world.store.create(PODS, pod(f"p{at}"), namespace="default")
        await world.run_until(lambda: world.loop.writing == 5)
        await world.loop.drain(5)
        assert set(world.bound().values()) == {"n0"}

    asyncio.run(run())


def test_a_write_that_failed_is_not_tried_again_once_the_loop_is_drained() -> None:
    async def run() -> None:
        binds = 0

        async def away(verb: str, resource: Resource) -> None:
            nonlocal binds
            await asyncio.sleep(0)
            if verb == "bind":
                binds += 1
                raise Unreachable("gone")

        async def for_ever(_seconds: float) -> None:
            await asyncio.Event().wait()

        world = World(away, sleep=for_ever)
        world.store.create(NODES, node("n0"))
        world.store.create(PODS, pod("p0"), namespace="default")
        await world.run_until(lambda: binds == 1)
        async with asyncio.timeout(10):
            await world.loop.drain(60)
        assert (world.loop.writing, binds) == (0, 1)
        assert (len(world.scheduler.ledger), list(world.scheduler.pending)) == (0, [("default", "p0")])
        assert [str(one.outcome.error) for one in world.settled if one.outcome] == [ENDING]

    asyncio.run(run())


def test_a_write_that_fails_as_nobody_foresaw_takes_that_write_alone() -> None:
    async def run() -> None:
        binds = 0

        async def wrong(verb: str, resource: Resource) -> None:
            nonlocal binds
            if verb == "bind":
                binds += 1
                if binds <= ATTEMPTS:
                    raise ZeroDivisionError

        world = World(wrong)
        world.store.create(NODES, node("n0"))
        for at in range(3):
            world.store.create(PODS, pod(f"p{at}"), namespace="default")
        await world.run_until(lambda: all(world.bound().values()))
        assert (binds > ATTEMPTS, set(world.bound().values())) == (True, {"n0"})

    asyncio.run(run())


def test_what_fails_over_telling_of_a_decision_changes_nothing() -> None:
    async def run() -> None:
        async def fine(verb: str, resource: Resource) -> None:
            await asyncio.sleep(0)

        world = World(fine)
        failures: list[Exception] = []
        nobody: dict[object, Exception] = {}
        world.loop = SchedulingLoop(
            world.scheduler,
            world.cluster,
            lambda: NOW,
            Backoff(lambda: 0.0),
            on_settled=lambda settled: failures.append(nobody[settled.decision.pod]),
            on_failure=failures.append,
        )
        world.store.create(NODES, node("n0"))
        for at in range(3):
            world.store.create(PODS, pod(f"p{at}"), namespace="default")
        await world.run_until(lambda: all(world.bound().values()) and len(failures) == 3)
        assert {type(one) for one in failures} == {KeyError}

    asyncio.run(run())
