"""A workload in the embedded cluster as components meet in production: informers, the scheduler's loop, a kubelet, owners.

The clock is the event loop's, see `tests.virtual_time`. Nothing here is shared with the simulator but what runs in production.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import NotFound, StrategicPatch
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODES, PODS, PRIORITY_CLASSES
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.pod import read_pod
from koordpolicy.model.table import NodeTable
from koordpolicy.runtime.watching import Watching
from koordpolicy.scheduler import PodDecision, Scheduler
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.driver import Settled
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.loop import SchedulingLoop
from koordpolicy.scheduler.scheduler import OnDecided
from koordpolicy.simulator.simulation import EPOCH
from koordpolicy.simulator.workload import Arrival, Workload
from tests import virtual_time

SECOND = 10**9
RUNNING = StrategicPatch({"status": {"phase": "Running"}})


class Decided(NamedTuple):
    """A pod that got a node at a second of the workload."""

    second: int
    pod: str
    node: str


def noting(decided: list[Decided], now: Callable[[], int]) -> OnDecided:
    """Notes each decision that places a pod."""

    def note(_cycle: Cycle, _evaluation: Evaluation | None, _table: NodeTable, decision: PodDecision) -> None:
        if decision.placed:
            decided.append(Decided((now() - EPOCH) // SECOND, decision.pod[1], decision.node))

    return note


class Embedded:
    """Runs a workload to its end; `decided` are the pods that got a node, in order."""

    def __init__(self, graph: RuleGraph, workload: Workload) -> None:
        self._begin = asyncio.get_running_loop().time()
        self._workload = workload
        self.decided: list[Decided] = []
        self.store = Store(lambda: self.now() / SECOND)
        self.cluster = MemoryCluster(self.store)
        self.scheduler = Scheduler(graph, self.now)
        self.scheduler.on_decided = noting(self.decided, self.now)
        self.loop = SchedulingLoop(
            self.scheduler, self.cluster, self.now, Backoff(lambda: 0.0), on_settled=self._settled
        )
        handlers = EventHandlers(
            self.scheduler,
            unreadable=UnreadableObjects(lambda *found: None),
            after=lambda resource, change: self.loop.wake(),
        )
        self._watching = [
            Watching(self.cluster, resource, mirror, Backoff(lambda: 0.0))
            for resource, mirror in handlers.mirrors.items()
        ]
        self._tasks: list[asyncio.Task[Any]] = []
        self._arrivals: dict[str, Arrival] = {}

    def now(self) -> int:
        return EPOCH + round((asyncio.get_running_loop().time() - self._begin) * SECOND)

    async def run(self) -> None:
        for one in self._workload.objects:
            self.store.create(PRIORITY_CLASSES, one)
        for one in self._workload.nodes:
            self.store.create(NODES, one)
        for watching in self._watching:
            self._start(watching.run())
        for watching in self._watching:
            await watching.settled.wait()
        self._start(self.loop.run())
        for arrival in self._workload.arrivals:
            self._start(self._arrive(arrival))
        await self._until(EPOCH + self._workload.horizon())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _until(self, time: int) -> None:
        await asyncio.sleep(max(time - self.now(), 0) / SECOND)

    def _start(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _arrive(self, arrival: Arrival) -> None:
        await self._until(EPOCH + arrival.time)
        self._create(arrival)

    def _create(self, arrival: Arrival) -> None:
        made = self.store.create(PODS, arrival.pod, namespace="default")
        self._start(self._live(arrival, read_pod(made).uid))

    def _settled(self, settled: Settled) -> None:
        if settled.decision.placed:
            assert settled.outcome is not None
            assert settled.outcome.error is None

    async def _live(self, arrival: Arrival, uid: str) -> None:
        """What kubelet and owner do about a pod: it runs, ends in time, or stops when it has to and is made anew."""
        name = arrival.pod["metadata"]["name"]
        watch = self.store.watch(PODS, field_selector=f"metadata.name={name}")
        news = asyncio.Event()
        watch.wake = news.set
        ends: int | None = None
        while True:
            news.clear()
            found = self.store.find(PODS, name, namespace="default")
            pod = None if found is None else read_pod(found)
            if pod is None or pod.uid != uid:
                self._create(arrival)
                return
            if pod.node_name and ends is None:
                ends = self.now() + (arrival.duration or self._workload.horizon())
                self.store.patch(PODS, name, RUNNING, namespace="default", subresource="status")
            times = [time for time in (ends, pod.deleted_at) if time is not None]
            due = min(times, default=None)
            if due is not None and due <= self.now():
                with suppress(NotFound):
                    self.store.delete(PODS, name, namespace="default", grace_seconds=0)
                if due != ends:
                    self._create(arrival)
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(None if due is None else (due - self.now()) / SECOND):
                    await news.wait()


def embedded(graph: RuleGraph, workload: Workload) -> tuple[list[Decided], Mapping[str, str]]:
    """Which pods got a node, in order, and where pods are at the end."""

    async def run() -> tuple[list[Decided], Mapping[str, str]]:
        made = Embedded(graph, workload)
        await made.run()
        pods = [read_pod(one) for one in made.store.list(PODS).items]
        return made.decided, {pod.name: pod.node_name for pod in pods}

    return virtual_time.run(run())
