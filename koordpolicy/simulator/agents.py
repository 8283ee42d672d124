"""The agent of a simulated node: the real collectors, strategies and door, on the model of a kernel and a virtual clock.

    the kernel runs on → collectors count → facts → strategies ask and plan → the door writes, the API evicts

On a real node there is a round each second. Here there are as many at a time as it takes until nothing is written, each with a
second of the kernel before it, once an interval; more of them where memory grows. Peaks are predicted from one sample an interval.
Of the strategies those take part whose effect the model has; `NOT_SIMULATED` says what does not. Nobody goes for CPU that
best-effort work has too little of: that takes more measurements than there are rounds.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from koordpolicy.agent.audit.log import AuditLevel, AuditLog
from koordpolicy.agent.carrying_out import CarryingOut
from koordpolicy.agent.collection import KIND as METRICS
from koordpolicy.agent.collection import decide_collection
from koordpolicy.agent.collectors.kernel_reader import KernelUsage
from koordpolicy.agent.collectors.usage import Scene, UsageCollector
from koordpolicy.agent.facts import agent_record
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.hooks.containers import KIND as HOOK
from koordpolicy.agent.measurements.levels import Measurements
from koordpolicy.agent.node_strategies import node_strategies
from koordpolicy.agent.reports.usage import UsageView, pods_by_uid
from koordpolicy.agent.rounds.prediction import PredictionRounds
from koordpolicy.agent.strategies.cpu_burst import KIND as BURST
from koordpolicy.agent.strategies.cpu_eviction import KIND as CPU_EVICTION
from koordpolicy.agent.strategies.isolation import KIND as ISOLATION
from koordpolicy.agent.strategies.memory_eviction import KIND as MEMORY_EVICTION
from koordpolicy.agent.strategies.prediction_rules import KIND as PREDICTION
from koordpolicy.agent.strategies.suppression import KIND as SUPPRESS
from koordpolicy.agent.strategies.suppression import CPUSuppression, Suppression
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.algorithms.records import PodRecords
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.event_correlator import EventRecorder
from koordpolicy.kube.memory.store import finish
from koordpolicy.kube.port import Cluster
from koordpolicy.language.cel.errors import CelError
from koordpolicy.linux.writes.write import FileOutcome
from koordpolicy.model.facts import Record
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.pod import Pod
from koordpolicy.runtime.counting import Unscraped
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.kernels import SimulatedKernel
from koordpolicy.simulator.machines import Machine, PodKey, Shares

_STRATEGIES: Final = frozenset({SUPPRESS, HOOK, BURST, ISOLATION, CPU_EVICTION, MEMORY_EVICTION})
KINDS: Final = _STRATEGIES | {PREDICTION}
"""The kinds that take part."""
NOT_SIMULATED: Final = (
    "Interference",
    "SystemTuning",
    "HostApplicationSet",
    "Isolation.cpu.identity",
    "Isolation.cpu.expels",
    "Isolation.cache",
    "Isolation.disk",
    "Isolation.network",
    "Isolation of page cache and watermarks",
    "evictions by satisfaction",
)
"""What agents do on real nodes alone: the model has no effect of it, for people."""

_ROUNDS: Final = 16
"""Rounds at a time at most; growing in steps of a tenth is over by then."""
_HEAD_START: Final = 60 * SECOND
"""How long the agent has been there when its first pod comes."""
_PARTS: Final = 60
_GROWTH: Final = 100
"""While memory grows there is a round at each hundredth of the node's, in so many parts of an interval at most."""
_AUDIT: Final = 1 << 12


@dataclass(slots=True)
class AgentCounts:
    """What came of all agents together.

    `throttled` are nanoseconds in which containers had used up a quota, `killed` containers that the OOM killer ended.
    """

    rounds: int = 0
    writes: int = 0
    refused: int = 0
    killed: int = 0
    throttled: float = 0.0


@dataclass(frozen=True, slots=True)
class AgentSite:
    """What an agent has around it: policies, the cluster, what it knows of its node, who hears of Events and failures.

    `failed` hears of decisions that cannot be made, with the kind; `chance` gives numbers from 0 to 1.
    """

    graph: RuleGraph
    cluster: Cluster
    sight: Callable[[str], NodeSight | None]
    events: EventRecorder
    failed: Callable[[str, Record, str, int], None]
    chance: Callable[[], float]
    counts: AgentCounts = field(default_factory=AgentCounts)


class SimulatedAgent:
    """The agent of a node with its kernel. Times are nanoseconds since 1970; `now` is how far the kernel has come."""

    def __init__(self, site: AgentSite, machine: Machine, now: int) -> None:
        self._site = site
        self.node = machine
        self.kernel = SimulatedKernel(machine)
        self._start = now - _HEAD_START
        graph = site.graph
        self._suppression = CPUSuppression(graph)
        self._records = PodRecords()
        sight = site.sight(machine.name)
        assert sight is not None
        record = agent_record(graph, self._suppression, sight, now)
        self._collection = decide_collection(graph, record, now, {})
        self._found = Measurements(self._collection)
        kernel = self.kernel
        self._usage = KernelUsage(kernel.root, kernel.hierarchy, kernel.node.files)
        self._collector = UsageCollector(self._usage)
        self._strategies = [one for one in node_strategies(site.chance) if one.kind in _STRATEGIES]
        audit = AuditLog(_AUDIT, lambda: kernel.now, str, verbosity=AuditLevel.EVICTION)
        self._doing = CarryingOut(
            site.cluster, site.events, audit, Unscraped(), self._start, machine.name, stops=None
        )
        self._predictions = PredictionRounds(None)
        self._sampled_at = self._start
        self._frame_seen: NodeFrame | None = None
        self.record: Record = record
        """The facts of the last round."""
        self._killed: list[PodKey] = []
        self._evicted: list[tuple[PodKey, str]] = []

    @property
    def now(self) -> int:
        """How far the kernel has come."""
        return self._start + self.kernel.now

    def start(self, pod: Pod, memory: int, growth: int) -> None:
        """A pod is started here; see `SimulatedKernel.start`."""
        self.kernel.start(pod, memory, growth)

    def stop(self, key: PodKey) -> None:
        """A pod has ended."""
        self.kernel.stop(key)

    def rate(self, key: PodKey) -> float:
        """The speed of a pod: what it got of what it wished."""
        running = self.kernel.placed.get(key)
        if running is None:  # stopped by now
            return 0.0
        if running.wish <= 0:
            return 1.0
        return min(self.kernel.used(running) / running.wish, 1.0)

    def take_killed(self) -> list[PodKey]:
        """Pods that run, of which a container was killed since somebody asked."""
        killed, self._killed = self._killed, []
        self._site.counts.killed += len(killed)
        return [key for key in dict.fromkeys(killed) if key in self.kernel.placed]

    def take_evicted(self) -> list[tuple[PodKey, str]]:
        """Pods that were asked to go since somebody asked, and why."""
        evicted, self._evicted = self._evicted, []
        return evicted

    def decision(self) -> Suppression:
        """What policy says of suppression, by the facts of the last round."""
        return self._suppression.decide(self.record, self.now)

    def look(self, wishes: dict[PodKey, float], now: int, *, watches: bool = True, acts: bool = True) -> None:
        """Bring the node up to this time, at the end of which pods wish to use so many millicores.

        An agent that does not `act` does so later, and one that does not `watch` either does nothing at all.
        """
        elapsed = max(now - self.now, 0)
        settling = min(elapsed // SECOND, _ROUNDS if acts else 1)
        for part in self._parts(elapsed - settling * SECOND):
            self._pass(part)
            if self.kernel.growth and watches:
                self._round()
        self.kernel.demand(wishes)
        before = self.kernel.throttled()
        if acts:
            for _ in range(settling):
                if not self._round():
                    break
            self._predict()
        elif settling:
            self._killed += self.kernel.run(SECOND)
        self._share(elapsed, before)

    def pass_by(self, now: int) -> None:
        """Bring the node up to this time, in which its agent does nothing and pods wish for what they did."""
        wishes = {key: running.wish for key, running in self.kernel.placed.items()}
        self.look(wishes, now, watches=False, acts=False)

    def stand_still(self, now: int) -> None:
        """Bring the node up to this time, in which nothing of it went on."""
        self._start += max(now - self.now, 0)

    def _parts(self, time: int) -> Iterator[int]:
        """A time in as many parts as it takes to see memory grow."""
        grown = self.kernel.growth * time / SECOND
        parts = min(max(int(_GROWTH * grown / max(self.node.memory, 1)), 1), _PARTS)
        for _ in range(parts if time > 0 else 0):
            yield time // parts

    def _pass(self, time: int) -> None:
        """Let time go by in which nobody looks, and count at its end, so that rates are those of what follows."""
        left = time - SECOND if self.kernel.growth else time
        self._killed += self.kernel.go_on(left)
        self._end_stopped()
        self._collect()

    def _end_stopped(self) -> None:
        for key, running in tuple(self.kernel.placed.items()):
            if running.ends_at is not None and running.ends_at <= self.now:
                self.kernel.stop(key)

    # --- a round ----------------------------------------------------------------------------------

    def _collect(self) -> None:
        kernel = self.kernel
        scene = Scene(kernel.pods, {}, kernel.best_effort)
        every, within = self._collection.interval, self._collection.system_inputs_within
        self._collector.collect(self._found, scene, kernel.now, every, within)
        kernel.node.files.next_round()

    def _round(self) -> bool:
        """A second of the kernel, and a round of the agent; whether it did anything."""
        counts = self._site.counts
        self._killed += self.kernel.run(SECOND)
        self._collect()
        frame = self._frame()
        if frame is None:
            return False
        counts.rounds += 1
        self._frame_seen = frame
        self._doing.results.clear()
        finish(self._doing.round(self._strategies, frame, self._told))
        outcomes = [one.outcome for results in self._doing.results.values() for one in results]
        written = outcomes.count(FileOutcome.WRITTEN)
        counts.writes += written
        counts.refused += outcomes.count(FileOutcome.FAILED)
        return bool(self._note_evictions() or written)

    def _frame(self) -> NodeFrame | None:
        graph, kernel, now = self._site.graph, self.kernel, self.now
        sight = self._site.sight(self.node.name)
        if sight is None:
            return None
        view = UsageView(self._found, self._collection, graph.catalogue, kernel.now)
        metric: NodeMetric | None = view.latest(self.node.name, now, pods_by_uid(sight.pods), (), None)
        if metric is not None:
            self.node.metric = metric
        seen = replace(sight, metric=metric)
        self.record = agent_record(graph, self._suppression, seen, now, known=self._records)
        self._records.keep(sight.pods)
        return NodeFrame(
            graph,
            sight.node,
            self.record,
            kernel.pods,
            self._found,
            self._collection,
            kernel.node,
            self.node.processors,
            now,
            kernel.now,
        )

    def _predict(self) -> None:
        """Take a sample where it is time, and report what of it may be reclaimed."""
        frame, metric = self._frame_seen, self.node.metric
        sight = self._site.sight(self.node.name)
        if frame is None or metric is None or sight is None or not self._site.graph.subjects(PREDICTION):
            return
        with self._told(PREDICTION, frame):
            if frame.now - self._sampled_at >= self._predictions.interval(0):
                self._sampled_at = frame.now
                finish(self._predictions.round(frame))
            self.node.metric = self._predictions.told(metric, frame, sight.pods)

    @contextmanager
    def _told(self, kind: str, frame: NodeFrame) -> Iterator[None]:
        try:
            yield
        except CelError as error:
            self._site.failed(kind, frame.record, str(error), frame.now)

    def _note_evictions(self) -> bool:
        """Remember who was asked to go in this round; whether anybody was."""
        found = False
        for kind in (CPU_EVICTION, MEMORY_EVICTION):
            planned = self._doing.plans.get(kind)
            for one in () if planned is None else planned.evictions:
                running = self.kernel.placed.get((one.namespace, one.name))
                if running is not None and running.pod.pod.uid == one.uid and running.ends_at is None:
                    running.ends_at = self.now + running.pod.grace * SECOND
                    self._evicted.append(((one.namespace, one.name), one.reason))
                    found = True
        return found

    # --- what is seen of the node -----------------------------------------------------------------

    def _share(self, elapsed: int, before: dict[str, tuple[int, int]]) -> None:
        """Show on the machine how its CPU and memory are used, and count how long containers were throttled."""
        node, kernel = self.node, self.kernel
        others = wished = given = 0.0
        for key, pod in node.pods.items():
            running = kernel.placed.get(key)
            if running is None:  # it was asked to go, and has
                pod.cpu = pod.memory = 0
                continue
            used = kernel.used(running)
            pod.cpu, pod.memory = int(used), kernel.memory(running)
            if running.best_effort:
                wished, given = wished + running.wish, given + used
            else:
                others += used
        limit = self._usage.group_limit(kernel.best_effort)
        node.shares = Shares(int(others), int(wished), int(given), min(limit, node.cpu))
        for path, (periods, throttled) in kernel.throttled().items():
            had, was = before.get(path, (0, 0))
            if periods > had:
                share = max(throttled - was, 0) / (periods - had)
                self._site.counts.throttled += min(share, 1.0) * elapsed


class SimulatedAgents:
    """The agents of the nodes that have had pods, by the names of their nodes.

    Where policies do not say what is to be measured an agent waits, as it does on a real node, and there is none.
    """

    def __init__(self, site: AgentSite) -> None:
        self._site = site
        self._agents: dict[str, SimulatedAgent] = {}
        self._waiting: set[str] = set()

    def __len__(self) -> int:
        return len(self._agents)

    def __contains__(self, node: str) -> bool:
        return node in self._agents

    def __getitem__(self, node: str) -> SimulatedAgent:
        return self._agents[node]

    @property
    def names(self) -> frozenset[str]:
        """The nodes that have an agent."""
        return frozenset(self._agents)

    @property
    def counts(self) -> AgentCounts:
        """What came of all of them together."""
        return self._site.counts

    def start(self, machine: Machine, pod: Pod, memory: int, growth: int, now: int) -> None:
        """A pod is started on a node; it uses so many bytes, and takes so many more an hour."""
        if machine.name in self._waiting:
            return
        agent = self._agents.get(machine.name)
        if agent is None:
            try:
                agent = self._agents[machine.name] = SimulatedAgent(self._site, machine, now)
            except CelError as error:
                self._waiting.add(machine.name)
                self._site.failed(METRICS, {"name": machine.name}, str(error), now)
                return
        agent.start(pod, memory, growth // 3600)

    def stop(self, machine: Machine, key: PodKey) -> None:
        """A pod has ended on a node."""
        if machine.name in self._agents:
            self._agents[machine.name].stop(key)
