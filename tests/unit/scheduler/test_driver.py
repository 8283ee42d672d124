"""The driver: beside volumes that are slow, and on a virtual clock with a rim that knows no event loop."""

import asyncio
import heapq
from collections.abc import Coroutine, Generator
from itertools import count
from typing import Any

from koordpolicy.kube import MergePatch, Resource
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import BIND_COMPLETED, SELECTED_NODE
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.binder import WriteOutcome, apply
from koordpolicy.scheduler.driver import Action, Driver, Settled
from koordpolicy.scheduler.ledger import Stage
from koordpolicy.scheduler.loop import ENDING
from tests.unit.scheduler import test_loop as loops
from tests.unit.scheduler.test_volumes import claim, hear, storage_class, using
from tests.unit.scheduler.world import World

SLOW, PLAIN = 2_000, 1_000
BOUND = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": "v"}}


def slow_pod(name: str) -> dict[str, Any]:
    made = loops.pod(name)
    made["spec"] |= using(f"c-{name}")
    return made


async def _at_once(verb: str, resource: Resource) -> None:
    await asyncio.sleep(0)


def test_slow_volumes_hold_up_no_other_pod() -> None:
    """Far more pods wait for volumes than writes may be on their way, and they are heard of first."""

    async def run() -> None:
        made = asyncio.Event()

        async def until_made(_seconds: float) -> None:
            await made.wait()

        world = loops.World(_at_once, sleep=until_made, in_flight=16)
        world.store.create(STORAGE_CLASSES, storage_class("made", "disk.example.com"))
        for at in range(100):
            world.store.create(NODES, loops.node(f"n{at}"))
        for at in range(SLOW):
            world.store.create(PERSISTENT_VOLUME_CLAIMS, claim(f"c-a{at}", "made"), namespace="default")
            world.store.create(PODS, slow_pod(f"a{at}"), namespace="default")
        for at in range(PLAIN):
            world.store.create(PODS, loops.pod(f"p{at}"), namespace="default")
        await world.run_until(lambda: len(world.settled) >= PLAIN and world.loop.awaiting_claims == SLOW)
        assert world.loop.writing == 0
        assert {one.pod.name[0] for one in world.settled} == {"p"}
        assert len(world.settled) == PLAIN

    asyncio.run(run())


class Pause:
    """What a plugin waits for on a virtual clock: some seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __await__(self) -> Generator[float, None, None]:
        yield self.seconds


async def _pause(seconds: float) -> None:
    await Pause(seconds)


class VirtualRim:
    """Carries actions out one after another at the world's time; what waits goes on when its time has come."""

    def __init__(self, world: World, cluster: MemoryCluster) -> None:
        self.world = world
        self.cluster = cluster
        self.settled: list[tuple[str, int]] = []
        self.driver = Driver(world.scheduler, on_settled=self._settle)
        self._waiting: list[tuple[int, int, Action, Coroutine[Any, Any, WriteOutcome]]] = []
        self._tickets = count()

    def _settle(self, settled: Settled) -> None:
        assert settled.outcome is not None
        assert settled.outcome.error is None, settled.outcome.error
        self.settled.append((settled.pod.name, self.world.now))

    def run(self, until: int) -> None:
        """All that is due until some time."""
        while True:
            for action in self.driver.actions(self.world.now):
                self._begin(action)
            times = [self.driver.next_time(), self._waiting[0][0] if self._waiting else None]
            due = min((time for time in times if time is not None), default=until)
            if due >= until:
                self.world.now = until
                return
            self.world.now = max(due, self.world.now)
            while self._waiting and self._waiting[0][0] <= self.world.now:
                *_, action, work = heapq.heappop(self._waiting)
                self._go_on(action, work)

    def _begin(self, action: Action) -> None:
        if action.plan is not None:
            self._go_on(action, apply(self.cluster, action.plan, sleep=_pause))

    def _go_on(self, action: Action, work: Coroutine[Any, Any, WriteOutcome]) -> None:
        try:
            seconds = work.send(None)
        except StopIteration as end:
            then = self.driver.done(action, end.value)
            if then is not None:
                self._begin(then)
        else:
            due = self.world.now + int(seconds * NANOSECONDS)
            heapq.heappush(self._waiting, (due, next(self._tickets), action, work))


def test_the_same_driver_runs_on_a_virtual_clock_without_an_event_loop() -> None:
    world = World()
    cluster = MemoryCluster(Store(lambda: world.now / NANOSECONDS))

    async def begin() -> None:
        made = await cluster.create(NODES, loops.node("n0"))
        world.scheduler.set_node(read_node(made))
        hear(world, await cluster.create(STORAGE_CLASSES, storage_class("made", "disk.example.com")))
        made = await cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("c-a", "made"), namespace="default")
        hear(world, made)
        for one in (slow_pod("a"), loops.pod("p"), loops.pod("q")):
            world.scheduler.set_pod(read_pod(await cluster.create(PODS, one, namespace="default")))

    asyncio.run(begin())
    rim, start = VirtualRim(world, cluster), world.now
    rim.run(start + 30 * NANOSECONDS)
    assert rim.settled == [("p", start), ("q", start)]
    account = world.scheduler.ledger.get(("default", "a"))
    assert account is not None
    assert account.stage == Stage.BINDING
    asyncio.run(_bind(cluster, "c-a"))
    rim.run(start + 60 * NANOSECONDS)
    assert rim.settled[2:] == [("a", start + 30 * NANOSECONDS)]


async def _bind(cluster: MemoryCluster, name: str) -> None:
    await cluster.patch(PERSISTENT_VOLUME_CLAIMS, name, MergePatch(BOUND), namespace="default")


def test_what_waits_for_its_volumes_ends_with_its_pod() -> None:
    """A pod that is deleted meanwhile is not asked about for minutes, and holds nothing."""

    async def run() -> None:
        go_on = asyncio.Event()

        async def wait(_seconds: float) -> None:
            await go_on.wait()

        world = loops.World(_at_once, sleep=wait)
        world.store.create(STORAGE_CLASSES, storage_class("made", "disk.example.com"))
        world.store.create(NODES, loops.node("n0"))
        world.store.create(PERSISTENT_VOLUME_CLAIMS, claim("c-a", "made"), namespace="default")
        world.store.create(PODS, slow_pod("a"), namespace="default")

        def done() -> bool:
            if world.scheduler.cache.pod_count:
                world.store.delete(PODS, "a", namespace="default")
            elif world.loop.awaiting_claims:
                go_on.set()
            return bool(world.settled)

        await world.run_until(done)
        (settled,) = world.settled
        assert settled.outcome is not None
        assert str(settled.outcome.error) == "the pod is not on its way to the node any more"
        assert (len(world.scheduler.ledger), list(world.scheduler.pending)) == (0, [])
        assert world.scheduler.cache.state.volumes.planned == ()

    asyncio.run(run())


def test_what_waits_for_its_volumes_is_taken_back_when_the_loop_is_drained() -> None:
    """However long volumes take, who stops or loses the lead waits for none; what was written serves whoever is next."""

    async def run() -> None:
        made = asyncio.Event()

        async def until_made(_seconds: float) -> None:
            await made.wait()

        world = loops.World(_at_once, sleep=until_made)
        world.store.create(STORAGE_CLASSES, storage_class("made", "disk.example.com"))
        for at in range(3):
            world.store.create(NODES, loops.node(f"n{at}"))
            world.store.create(PERSISTENT_VOLUME_CLAIMS, claim(f"c-a{at}", "made"), namespace="default")
            world.store.create(PODS, slow_pod(f"a{at}"), namespace="default")

        def selected() -> list[str]:
            claims = world.store.list(PERSISTENT_VOLUME_CLAIMS).items
            return [one["metadata"].get("annotations", {}).get(SELECTED_NODE, "") for one in claims]

        await world.run_until(lambda: all(selected()) and world.loop.awaiting_claims == 3)
        async with asyncio.timeout(10):
            await world.loop.drain(60)
        assert (world.loop.awaiting_claims, world.loop.writing) == (0, 0)
        assert (len(world.scheduler.ledger), len(list(world.scheduler.pending))) == (0, 3)
        assert {str(one.outcome.error) for one in world.settled if one.outcome} == {ENDING}
        chosen = selected()

        def bind_claims() -> bool:
            if world.loop.awaiting_claims == 3:
                for at in range(3):
                    world.store.patch(
                        PERSISTENT_VOLUME_CLAIMS, f"c-a{at}", MergePatch(BOUND), namespace="default"
                    )
                made.set()
            return all(world.bound().values())

        # It leads again: each pod goes where its claim has gone.
        await world.run_until(bind_claims)
        assert [world.bound()[f"a{at}"] for at in range(3)] == chosen

    asyncio.run(run())
