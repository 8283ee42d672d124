"""A simulation in a thread of its own, which waits where somebody looks: for the clock, and for questions.

The simulation is the one of `koordpolicy simulate`; at each report of its agents it tells how far it is, and there the console
takes a frame, lets it wait as long as its speed says, and asks what it has to ask. So nobody reads what is being changed.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, Self

import numpy as np

from koordpolicy.agent.reports.node_metric import status_of
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.console.frames import COLUMNS, Frame, Frames, leading, share
from koordpolicy.console.worlds.world import CannotAnswer, Names, NodeShown, PodBackground, PodSpan
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import Object
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.model.protocol import CPU
from koordpolicy.scheduler.profile import ProfileError
from koordpolicy.simulator.chance import Chance
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.journal import Journal
from koordpolicy.simulator.machines import RunningPod
from koordpolicy.simulator.simulation import Simulation, SimulationSettings
from koordpolicy.simulator.workload import Workload, WorkloadError

SPEEDS: Final = (600, 3600, 14_400, 0)
"""Simulated seconds a second that are offered; 0 is as fast as it goes."""

_PATIENCE: Final = 0.5
"""Seconds that the thread waits at most before it looks again whether it is to end."""
_QUESTIONS: Final = 64

Question = tuple[Callable[[], Any], "Future[Any]"]


class _Stopped(Exception):
    """The console ends, and the simulation with it."""


class SimulatedWorld:
    """A simulation to look at. `clock` gives seconds that only grow. Use as a context: it runs meanwhile."""

    kind = "simulated"

    def __init__(
        self,
        graph: RuleGraph,
        workload: Workload,
        settings: SimulationSettings,
        chance: Chance,
        clock: Callable[[], float],
        *,
        speed: int = 3600,
        paused: bool = False,
    ) -> None:
        self.graph = graph
        self.title = workload.title
        self.frames = Frames()
        self._workload = workload
        self._settings = settings
        self._chance = chance
        self._clock = clock
        self._speed, self._paused, self._steps = speed, paused, 0
        self._anchor = (clock(), 0)
        self._condition = threading.Condition()
        self._questions: deque[Question] = deque()
        self._ending = self._over = False
        self._failure = ""
        self._passed = 0
        self._simulation: Simulation | None = None
        self._nodes = tuple(
            NodeShown(node.name, machine.cpu, machine.memory, dict(node.labels))
            for node, machine in self._begin()
        )
        self._names = Names(revisions=("",))
        self._open: dict[str, tuple[RunningPod, PodSpan]] = {}
        self._spans: list[PodSpan] = []
        self._rows: np.ndarray[Any, np.dtype[np.int64]] | None = None
        self._picture: tuple[int, Snapshot] | None = None
        self._arrivals = {
            f"{arrival.pod['metadata'].get('namespace') or 'default'}/{arrival.pod['metadata'].get('name', '')}": arrival
            for arrival in workload.arrivals
        }
        self._thread = threading.Thread(target=self._run, name="simulation", daemon=True)

    def _begin(self) -> list[tuple[Any, Any]]:
        """Make the simulation. Raises `CannotAnswer`."""
        try:
            made = Simulation(self.graph, self._workload, self._settings, self._chance, self._tell)
        except (WorkloadError, ProfileError, KubeError) as error:
            raise CannotAnswer(str(error)) from None
        self._simulation = made
        return [(made.cluster.objects.nodes[name], made.machines[name]) for name in made.fleet.names]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._ending = True
            self._condition.notify_all()
        self._thread.join(timeout=10)

    # --- asked from the event loop ----------------------------------------------------------------

    def nodes(self) -> tuple[NodeShown, ...]:
        """See `World`."""
        return self._nodes

    def names(self) -> Names:
        """See `World`."""
        return self._names

    def clock(self) -> dict[str, Any]:
        """See `World`."""
        assert self._simulation is not None
        return {
            "steers": True,
            "start": self._simulation.start / SECOND,
            "span": self._simulation.span / SECOND,
            "interval": self._simulation.interval / SECOND,
            "passed": self._passed / SECOND,
            "paused": self._paused,
            "speed": self._speed,
            "speeds": list(SPEEDS),
            "over": self._over,
            "failure": self._failure,
        }

    def steer(self, wanted: Mapping[str, Any]) -> None:
        """See `World`: `paused`, `speed`, `step` (true: one report further)."""
        with self._condition:
            if "speed" in wanted:
                if wanted["speed"] not in SPEEDS:
                    raise CannotAnswer(f"`speed` is one of {', '.join(map(str, SPEEDS))}")
                self._speed = wanted["speed"]
            if "paused" in wanted:
                self._paused = wanted["paused"] is True
            if wanted.get("step") is True:
                self._steps += 1
            self._anchor = (self._clock(), self._passed)
            self._condition.notify_all()

    def spans(self) -> tuple[PodSpan, ...]:
        """See `World`."""
        return tuple(self._spans)

    async def picture(self) -> Snapshot:
        """See `World`."""
        import asyncio  # noqa: PLC0415  # the only use

        with self._condition:
            if len(self._questions) >= _QUESTIONS:
                raise CannotAnswer("too much is being asked: try again")
            future: Future[Snapshot] = Future()
            self._questions.append((self._taken, future))
            self._condition.notify_all()
        return await asyncio.wrap_future(future)

    def submitted(self, pod: str) -> Object | None:
        """See `World`."""
        found = self._arrivals.get(pod)
        return None if found is None else found.pod

    async def beside(self, pod: str, picture: Snapshot) -> PodBackground:
        """See `World`."""
        return PodBackground(unknown="a simulation writes no Events")

    # --- in the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        assert self._simulation is not None
        try:
            self._simulation.run()
        except _Stopped:
            return
        except Exception as error:  # noqa: BLE001  # told on the page: the console goes on with what there is
            self._failure = str(error) or type(error).__name__
        self._over = True
        with self._condition:
            while not self._ending:
                self._answer()
                self._condition.wait(_PATIENCE)

    def _tell(self, passed: int, whole: int, journal: Journal) -> None:
        """At each report: a frame, and whatever is wanted here."""
        self._passed = passed
        self._take_frame(passed, journal)
        with self._condition:
            while True:
                if self._ending:
                    raise _Stopped
                self._answer()
                if self._steps:
                    self._steps -= 1
                    self._paused = True
                    return
                if self._paused:
                    self._condition.wait(_PATIENCE)
                    continue
                wait = self._ahead(passed)
                if wait <= 0 or passed >= whole:
                    return
                self._condition.wait(min(wait, _PATIENCE))

    def _ahead(self, passed: int) -> float:
        """Seconds that the simulation is ahead of where its speed lets it be."""
        if not self._speed:
            return 0.0
        since, anchor = self._anchor
        return (passed - anchor) / SECOND / self._speed - (self._clock() - since)

    def _answer(self) -> None:
        while self._questions:
            question, future = self._questions.popleft()
            try:
                future.set_result(question())
            except Exception as error:  # noqa: BLE001  # whoever asked is told
                future.set_exception(error)

    def _taken(self) -> Snapshot:
        """The objects now; asked twice at one moment, the same."""
        simulation = self._simulation
        assert simulation is not None
        now = simulation.agenda.now
        if self._picture is None or self._picture[0] != now:
            reports = {
                machine.name: status_of(simulation.fleet.report(machine), {})
                for machine in simulation.fleet.machines
                if simulation.fleet.at
            }
            self._picture = (now, simulation.cluster.picture(reports))
        return self._picture[1]

    def _take_frame(self, passed: int, journal: Journal) -> None:
        simulation = self._simulation
        if simulation is None:  # it is being made
            return
        fleet, now = simulation.fleet, simulation.start + passed
        pods = self._follow(now)
        count = len(fleet.machines)
        classes, bands = self._names.classes, self._names.bands
        at = [pod.machine.index for pod, _ in pods]
        cpu = (
            np.maximum(fleet.cpu_of(np.array([pod.slot for pod, _ in pods], np.int64)), 0)
            if pods
            else np.zeros(0, np.int64)
        )
        for (_, span), used in zip(pods, cpu.tolist(), strict=True):
            span.cpu = used
        view = NodeView(simulation.cluster.schedulers.first.cache.table)
        if self._rows is None:
            table = simulation.cluster.schedulers.first.cache.table
            self._rows = np.array([table.index(name) for name in fleet.names], np.int64)
        requested = view.amount("resources.requested", CPU)[self._rows]
        offered = np.zeros(count, np.int64)
        sample = journal.samples[-1] if journal.samples else None
        for name in () if sample is None else sample.offered:
            if name.endswith(CPU):
                offered = offered + view.amount("resources.allocatable", name)[self._rows]
        columns: dict[str, Any] = {
            "used": share(fleet.used, fleet.cpu),
            "services": share(fleet.others + fleet.system_cpu, fleet.cpu),
            "bestEffort": share(fleet.given, fleet.cpu),
            "withheld": share(fleet.withheld, fleet.cpu),
            "memory": share(fleet.held_memory(), fleet.memory),
            "requested": share(requested, fleet.cpu),
            "offered": share(offered, fleet.cpu),
            "class": leading(at, [classes.index(span.qos) for _, span in pods], cpu + 1, count),
            "band": leading(at, [bands.index(span.band) for _, span in pods], cpu + 1, count),
            "revision": np.zeros(count, np.uint8),  # all agents decide by what is simulated
            "pods": np.minimum(np.bincount(at, minlength=count) if at else np.zeros(count), 255).astype(
                np.uint8
            ),
        }
        rows = np.stack([columns[name] for name in COLUMNS], axis=1).tobytes()
        capacity = max(int(fleet.cpu.sum()), 1)
        self.frames.add(
            Frame(
                now,
                rows,
                {
                    "used": round(100 * float(fleet.used.sum()) / capacity, 2),
                    "services": round(100 * float((fleet.others + fleet.system_cpu).sum()) / capacity, 2),
                    "bestEffort": round(100 * float(fleet.given.sum()) / capacity, 2),
                    "withheld": round(100 * float(fleet.withheld.sum()) / capacity, 2),
                    "requested": round(100 * float(requested.sum()) / capacity, 2),
                    "memory": round(
                        100 * float(fleet.held_memory().sum()) / max(int(fleet.memory.sum()), 1), 2
                    ),
                    "running": fleet.pods,
                    "pending": 0 if sample is None else sample.pending,
                    "short": int(fleet.short.sum()),
                    "suppressed": int((fleet.withheld > 0).sum()),
                    "evicted": sum(journal.evicted.values()) + journal.preempted,
                },
            )
        )

    def _follow(self, now: int) -> list[tuple[RunningPod, PodSpan]]:
        """Note who came and went since the last report; all pods on nodes with what is told of them."""
        simulation = self._simulation
        assert simulation is not None
        classes, bands = list(self._names.classes), list(self._names.bands)
        there: dict[str, tuple[RunningPod, PodSpan]] = {}
        for machine in simulation.fleet.machines:
            for key, pod in machine.pods.items():
                name = "/".join(key)
                known = self._open.pop(name, None)
                if known is not None and known[0] is not pod:
                    self._open[name] = known
                    known = None
                if known is None:
                    span = PodSpan(
                        name,
                        machine.name,
                        pod.since,
                        pod.qos,
                        pod.priority,
                        requested=pod.request,
                    )
                    self._spans.append(span)
                    known = (pod, span)
                    if pod.qos not in classes:
                        classes.append(pod.qos)
                    if pod.priority not in bands:
                        bands.append(pod.priority)
                there[name] = known
        for pod, span in self._open.values():
            span.end, span.outcome = now, pod.stopping or "finished"
            span.cpu = 0
        self._open = there
        self._names = Names(tuple(classes), tuple(bands), self._names.revisions)
        return [*there.values()]
