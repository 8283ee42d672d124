"""The agent of one node while it runs: rounds of collectors, strategies and reports, each at policy's pace."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from operator import is_
from pathlib import Path
from typing import Any, Final

from koordpolicy.agent.audit.log import AuditLog
from koordpolicy.agent.carrying_out import CarryingOut
from koordpolicy.agent.collection import KIND as METRICS
from koordpolicy.agent.collection import Collection, decide_collection
from koordpolicy.agent.collectors.cold_memory import ColdMemoryCollector
from koordpolicy.agent.collectors.cpi import CPICounting
from koordpolicy.agent.collectors.devices import DeviceCollector
from koordpolicy.agent.collectors.kernel_reader import KernelUsage
from koordpolicy.agent.collectors.kernel_signals import KernelSignals
from koordpolicy.agent.collectors.machine import CPUS, MachineCollector
from koordpolicy.agent.collectors.signal_pace import SignalPace, decide_signal_pace
from koordpolicy.agent.collectors.signals import SignalCollector
from koordpolicy.agent.collectors.usage import Scene, UsageCollector
from koordpolicy.agent.elsewhere import makers
from koordpolicy.agent.facts import NodeSettings, agent_record
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.host_applications import HostApplications
from koordpolicy.agent.measurements.levels import CPU, MEMORY, Measurements
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod, node_pods
from koordpolicy.agent.node_strategies import NodeStrategy, node_strategies
from koordpolicy.agent.peak_files import PeakFiles
from koordpolicy.agent.pod_spans import PodSpans
from koordpolicy.agent.pods import PodAnswers
from koordpolicy.agent.reports.node_devices import DeviceReporter
from koordpolicy.agent.reports.node_metrics import NodeMetricReporter
from koordpolicy.agent.reports.node_topologies import TopologyReporter
from koordpolicy.agent.reports.runs import runs_of
from koordpolicy.agent.reports.usage import UsageView, pods_by_uid
from koordpolicy.agent.rounds.devices import DeviceRounds
from koordpolicy.agent.rounds.interference import add_signals, signals_of
from koordpolicy.agent.rounds.prediction import PredictionRounds
from koordpolicy.agent.stopping import PodStops
from koordpolicy.agent.strategies.cold_memory import ColdMemoryPace, decide_cold_memory
from koordpolicy.agent.strategies.host_applications import KIND as APPLICATIONS
from koordpolicy.agent.strategies.prediction_rules import KIND as PREDICTION
from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.agent.unchanged import read_facts
from koordpolicy.agent.undoing import HURTS
from koordpolicy.agent.watch import NodeWatch
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.algorithms.records import PodRecords
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.language.cel.errors import CelError
from koordpolicy.linux.signals import HostSignals
from koordpolicy.model.agent_runs import AgentRuns
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import node_reservation
from koordpolicy.model.protocol import QOS_BEST_EFFORT
from koordpolicy.model.reading import Amounts, ObjectError
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.topology import Processor
from koordpolicy.runtime.clock import monotonic_ns, now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks

LOG: Final = logging.getLogger(__name__)

_LEAST_PAUSE: Final = NANOSECONDS // 10
_SLACK: Final = NANOSECONDS // 20
"""Turns that are so near are taken together."""
_CHANCES: Final = 1_000_000
_WAIT: Final = 0.2
"""Seconds between looks at whether there is something to begin with."""


class NodeAgent:
    """Everything of one node; `kernel` is where it writes, `answers` who tells of its pods."""

    def __init__(
        self,
        component: RunningComponent,
        watch: NodeWatch,
        kernel: NodeKernel,
        answers: PodAnswers,
        audit: AuditLog,
        *,
        dry_run: bool = False,
        peaks: PeakFiles | None = None,
        terway: Path | None = None,
    ) -> None:
        self.component = component
        self.watch = watch
        self.kernel = kernel
        self.answers = answers
        self.audit = audit
        self.doing = CarryingOut(
            component.cluster,
            component.recorder,
            audit,
            component.process.metrics,
            now_ns(),
            watch.node,
            dry_run,
            makers=makers(kernel, terway, monotonic_ns, plan_only=dry_run),
            stops=PodStops(HostSignals(kernel.root, kernel.hierarchy)),
        )
        self.began = self.doing.began
        """Nanoseconds since 1970."""
        self.reporter = NodeMetricReporter(component.cluster, watch.node, self.runs)
        self.topology = TopologyReporter(component.cluster)
        self.devices = DeviceRounds(
            DeviceCollector(kernel.root, kernel.sources), DeviceReporter(component.cluster, now_ns)
        )
        self.applications = HostApplications(kernel)
        self.strategies = node_strategies(lambda: component.draw(_CHANCES) / _CHANCES)
        self.predictions = PredictionRounds(peaks)
        self.dry_run = dry_run
        self.measurements: Measurements | None = None
        self.settings = NodeSettings()
        self._collection: Collection | None = None
        self._collector = UsageCollector(KernelUsage(kernel.root, kernel.hierarchy, kernel.files))
        signals = KernelSignals(kernel.root, kernel.hierarchy)
        self.signals = SignalCollector(signals, CPICounting(signals.count, signals.cpus))
        self.machine = MachineCollector(kernel.root)
        self._signal_pace: SignalPace | None = None
        self._cold = ColdMemoryCollector(kernel.root, kernel.hierarchy)
        self._cold_pace: ColdMemoryPace | None = None
        self._troubles: dict[str, str] = {}
        self._records = PodRecords()
        self._pods: dict[str, NodePod] = {}
        self._pods_of: tuple[object, ...] = ()
        self._decided_by: tuple[object, ...] = ()
        self._written_for: Mapping[str, NodePod] | None = None
        self._pods_changed = asyncio.Event()
        """Wakes the strategies: a new pod does not wait for their turn."""
        watch.pods.follow(lambda _change: self._pods_changed.set())
        self._spans = None
        if component.tracing is not None:
            self._spans = PodSpans(component.tracing, watch.node, component.revision_of, now_ns)
            watch.pods.follow(self._spans.heard)
        self._due: dict[str, int] = {}
        """When each strategy has its next turn, in nanoseconds of the monotonic clock."""
        self._pause = NANOSECONDS

    # --- what is known ----------------------------------------------------------------------------

    @property
    def graph(self) -> RuleGraph:
        """The policies that decide about this node now."""
        return self.component.live.graph_for(self.watch.node, self._labels())

    def _labels(self) -> Mapping[str, str]:
        node = self.watch.objects.nodes.get(self.watch.node)
        return {} if node is None else node.labels

    def collection(self) -> Collection:
        """What is to be measured, and how often; where it cannot be decided, what was decided last."""
        assert self._collection is not None
        return self._collection

    def pods(self) -> dict[str, NodePod]:
        """The pods of this node that are not over, by UID, with their groups: the same mapping until one of them changes."""
        kubepods = self.kernel.kubepods()
        if kubepods is None:
            return {}
        raw = self.watch.pods.objects
        told = (kubepods, *raw.values())
        if len(told) != len(self._pods_of) or not all(map(is_, told, self._pods_of)):
            values = self.watch.objects.pods.items()
            listed = (
                (pod, raw.get(key, {})) for key, pod in values if pod.node_name in ("", self.watch.node)
            )
            self._pods, self._pods_of = node_pods(listed, kubepods), told
        return self._pods

    def starts_pods(self) -> bool:
        """Whether the groups of some pod's containers are not known yet."""
        return any(len(one.containers) < len(one.pod.containers) for one in self.pods().values())

    def frame(self) -> NodeFrame | None:
        """The node as strategies look at it; None while it is not known."""
        sight = self.watch.objects.sight(self.watch.node)
        if sight is None or self.measurements is None:
            return None
        graph, now, monotonic = self.graph, now_ns(), monotonic_ns()
        metric = self._latest(graph, now, monotonic)
        seen = NodeSight(sight.node, sight.pods, metric, sight.zones, sight.cpu, sight.devices)
        record = agent_record(graph, CPUSuppression(graph), seen, now, self.settings, self._records)
        self._records.keep(sight.pods)
        pods, pace = self.pods(), self._signal_pace
        signals = {} if pace is None else signals_of(self.measurements, pods, monotonic, pace)
        add_signals(record, signals)
        return NodeFrame(
            graph,
            sight.node,
            record,
            pods,
            self.measurements,
            self.collection(),
            self.kernel,
            self._processors(),
            now,
            monotonic,
            self.answers.age(monotonic) <= self.collection().pods_stale_after,
            self.settings.cpu_manager == "static",
            _reserved(sight.node.annotations),
            self.settings.kubelet_cpus,
            signals,
        )

    def _latest(self, graph: RuleGraph, now: int, monotonic: int) -> NodeMetric | None:
        assert self.measurements is not None
        return UsageView(self.measurements, self.collection(), graph.catalogue, monotonic).latest(
            self.watch.node,
            now,
            pods_by_uid(self.watch.objects.pods.values()),
            self.applications.known,
            self.reporter.last,
        )

    def _processors(self) -> Sequence[Processor]:
        found = self.machine.processors(monotonic_ns())
        self._trouble("processors", self.machine.failures.get(CPUS, ""))
        return found

    # --- rounds -----------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Wait for policies and the node, and decide what is measured."""
        await self.component.live.ready.wait()
        while True:
            if self.decide():
                return
            await asyncio.sleep(_WAIT)

    def decide(self) -> bool:
        """Decide anew what is measured; whether that is decided at all."""
        sight = self.watch.objects.sight(self.watch.node)
        if sight is not None:
            graph, now = self.graph, now_ns()
            try:
                record = agent_record(graph, CPUSuppression(graph), sight, now, self.settings, self._records)
                own = self.watch.own(resources.NODE_METRICS) or {}
                self._collection = decide_collection(graph, record, now, own)
                self.applications.decide(graph, record, now)
                self._signal_pace = decide_signal_pace(graph, record, now)
                self._cold_pace = decide_cold_memory(graph, record, now)
                self.devices.decide(graph, record, now)
            except (CelError, ObjectError) as error:
                self._trouble("MetricCollection", str(error))
            else:
                self._trouble("MetricCollection", "")
        if self._collection is None:
            return False
        if self.measurements is None:
            self.measurements = Measurements(self._collection)
        else:
            self.measurements.reach(self._collection)
        return True

    def collect(self) -> None:
        """One round of the usage collectors."""
        assert self.measurements is not None
        collection = self.collection()
        kubepods = self.kernel.kubepods()
        best_effort = "" if kubepods is None else kubepods.of_class(QOS_BEST_EFFORT)
        scene = Scene(self.pods(), self.applications.groups, best_effort)
        now = monotonic_ns()
        self._cold.collect(self.measurements, scene, self._cold_pace, now)
        self._collector.collect(
            self.measurements,
            scene,
            now,
            collection.interval,
            collection.system_inputs_within,
            self._cold.of_node(now),
        )
        self.signals.collect(self.measurements, scene.pods, self._signal_pace, now)
        self.kernel.files.next_round()
        failures = self._collector.failures | self.signals.failures | self._cold.failures
        self._troubles_of("collect", failures)
        self._show()

    async def report(self) -> bool:
        """Write the NodeMetric of this node; whether it was written. Of a dry run it says only that there is one."""
        if self.dry_run:
            await self.reporter.mark_dry_run()
            return False
        if self.measurements is None:
            return False
        view = UsageView(self.measurements, self.collection(), self.graph.catalogue, monotonic_ns())
        metric = view.averaged(
            self.watch.node,
            now_ns(),
            pods_by_uid(self.watch.objects.pods.values()),
            self.applications.known,
        )
        frame, sight = self.frame(), self.watch.objects.sight(self.watch.node)
        if frame is not None and sight is not None:
            metric = self.predictions.told(metric, frame, sight.pods)
        used = self.devices.in_use(self.measurements, self.pods(), view.now, self.collection().averages_over)
        written = await self.reporter.report(metric, self._zones(view), used, self.doing.best_effort_cpu)
        self.component.process.metrics.add(
            "koordpolicy_node_reports_total", result="written" if written else "failed"
        )
        return written

    async def predict(self) -> None:
        """Take a sample of what is used, to predict peaks by."""
        frame = self.frame()
        if frame is not None:
            with self._told(PREDICTION, frame):
                await self.predictions.round(frame)
            self.component.process.metrics.set("koordpolicy_agent_peaks", len(self.predictions))

    async def report_topology(self) -> bool:
        """Write the NodeResourceTopology of this node where it says something else; whether it was written."""
        node, frame = self.watch.own(resources.NODES), self.frame()
        if node is None or frame is None or self.dry_run:
            return False
        own = self.watch.own(resources.NODE_RESOURCE_TOPOLOGIES)
        written = await self.topology.report(node, frame, own)
        self.settings = replace(
            self.settings,
            cpu_manager=self.topology.kubelet.cpu_manager,
            kubelet_cpus=self.topology.kubelet_cpus,
        )
        if written:
            self.component.process.metrics.add("koordpolicy_node_topologies_total")
        return written

    async def look_at_devices(self) -> bool:
        """Look at the devices that policy wants, and write the Device object where it says something else."""
        if self.measurements is None or not await self.devices.look(self._processors()):
            return False
        self.devices.measure(self.measurements, self.kernel, self.pods(), monotonic_ns())
        node = self.watch.own(resources.NODES)
        if node is None or self.dry_run:
            return False
        written = await self.devices.report(node, self.watch.own(resources.DEVICES))
        if written:
            self.component.process.metrics.add("koordpolicy_node_devices_total")
        return written

    async def carry_out(self, strategies: Sequence[NodeStrategy], frame: NodeFrame) -> None:
        """One round of some strategies. What policy cannot decide changes nothing."""
        self._tell_of_cpus(frame)
        await self.doing.round(strategies, frame, self._told)

    @contextmanager
    def _told(self, kind: str, frame: NodeFrame) -> Iterator[None]:
        """Count the decisions of a kind, and tell of those that fail."""
        revision = self.component.revision_of(frame.graph.digest)
        try:
            yield
        except CelError as error:
            self.component.counts.add(kind, revision, failed=True)
            self.component.troubles.add(
                kind, frame.graph.digest, str(error), example=f"node {self.watch.node}", cause=error
            )
        else:
            self.component.counts.add(kind, revision)

    def start(self, tasks: Tasks) -> None:
        """Run all rounds beside."""
        tasks.start("decide", self._every(self._decided, lambda: self.collection().interval))
        tasks.start("collect", self._every(self._collected, lambda: self.collection().interval))
        tasks.start("report", self._every(self.report, lambda: self.collection().every, at_once=False))
        tasks.start(
            "predict",
            self._every(self.predict, lambda: self.predictions.interval(self.collection().interval)),
        )
        tasks.start("topology", self._every(self.report_topology, lambda: self.collection().pods_every))
        tasks.start(
            "devices",
            self._every(self.look_at_devices, lambda: self.devices.interval(self.collection().pods_every)),
        )
        tasks.start(
            "strategies",
            self._every(self._strategies, lambda: self._pause, at_once=False, woken=self._pods_changed),
        )

    async def _decided(self) -> None:
        """Decide anew where what is decided by is another."""
        graph = self.graph
        read = read_facts(graph, (METRICS,))
        by = (graph, self.watch.objects.nodes.get(self.watch.node), self.watch.own(resources.NODE_METRICS))
        same = len(by) == len(self._decided_by) and all(map(is_, by, self._decided_by))
        settled = read.timeless and read.reads_nothing("node") and not graph.subjects(APPLICATIONS)
        if not (same and settled):
            self._decided_by = by
            self.decide()

    async def _collected(self) -> None:
        self.collect()

    async def _strategies(self) -> None:
        """Those whose turn it is, by one look at the node."""
        changed = self.pods() is not self._written_for
        due = [
            one
            for one in self.strategies
            if self._due.get(one.kind, 0) <= monotonic_ns() or (changed and one.plan is not None)
        ]
        frame = self.frame() if due else None
        if frame is None:
            self._pause = self._until_next_turn()
            return
        self._written_for = frame.pods
        for one in due:
            self._due[one.kind] = frame.monotonic + max(one.interval(frame), _LEAST_PAUSE) - _SLACK
        await self.carry_out(due, frame)
        if self._spans is not None:
            self._spans.carried_out(frame, frame.pods, chain.from_iterable(self.doing.results.values()))
        self._pause = self._until_next_turn()

    def _until_next_turn(self) -> int:
        now = monotonic_ns()
        next_turn = min(self._due.values(), default=now) + _SLACK - now
        return min(max(next_turn, _LEAST_PAUSE), self.collection().interval)

    async def _every(
        self,
        work: Callable[[], Awaitable[Any]],
        interval: Callable[[], int],
        *,
        at_once: bool = True,
        woken: asyncio.Event | None = None,
    ) -> None:
        """Work again and again. What fails unforeseen is told of, and tried again at the next turn."""
        loop = asyncio.get_running_loop()
        due = loop.time() + (0 if at_once else interval() / NANOSECONDS)
        while True:
            if woken is None:
                await asyncio.sleep(max(due - loop.time(), 0))
            else:
                await asyncio.sleep(_LEAST_PAUSE / NANOSECONDS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(due - loop.time(), 0)):
                        await woken.wait()
                woken.clear()
            try:
                await work()
            except Exception:
                LOG.exception("a round of the agent failed")
                self.component.process.metrics.add("koordpolicy_internal_errors_total", place="agent")
            due = max(due + interval() / NANOSECONDS, loop.time())

    async def stop(self) -> None:
        """Give back what would hurt while nobody measures; say so."""
        self.signals.stop()
        self.devices.stop()
        results = self.kernel.door.undo(lambda write: write.writer in HURTS)
        self.doing.end_bursts(self.kernel.door, self.kernel.groups(self.pods()))
        if results:
            LOG.info("%d kernel files were given back what they said before", len(results))
        if self.doing.undo(now_ns()):
            LOG.info("the network of the node is shaped no more")

    # --- what is told -----------------------------------------------------------------------------

    def runs(self) -> AgentRuns:
        """Which policies this agent runs, as its NodeMetric says it."""
        return runs_of(self.component.live, self.watch.node, self._labels())

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        monotonic = monotonic_ns()
        return {
            "node": self.watch.node,
            "dryRun": self.dry_run,
            "pods": {
                "known": len(self.watch.objects.pods),
                "ageSeconds": round(self.answers.age(monotonic) / NANOSECONDS, 1),
                "troubles": {str(source): why for source, why in self.answers.trouble.items()},
            },
            "measurements": 0 if self.measurements is None else self.measurements.nbytes,
            "report": self.reporter.trouble or "good",
            "topology": self.topology.trouble or "good",
            "devices": self.devices.words,
            "prediction": self.predictions.trouble or "good",
            "troubles": {
                **{name: why for name, why in self._troubles.items() if why},
                **self.doing.failing.troubles,
            },
        }

    def _zones(self, view: UsageView) -> dict[int, tuple[Amounts, Amounts | None]]:
        found = view.found.zones
        window = self.collection().averages_over
        cpu = found.excerpt(CPU, view.now, window).aggregate("avg")
        memory = found.excerpt(MEMORY, view.now, window).aggregate("avg")
        return {
            zone: ({CPU: int(cpu[zone] * 1000), MEMORY: int(memory[zone])}, None)
            for zone in cpu.keys() & memory.keys()
        }

    def _show(self) -> None:
        assert self.measurements is not None
        metrics = self.component.process.metrics
        metrics.set("koordpolicy_agent_pods_age_seconds", self.answers.age(monotonic_ns()) / NANOSECONDS)
        metrics.set("koordpolicy_agent_pods", len(self.watch.objects.pods))
        metrics.set("koordpolicy_agent_measurements_bytes", self.measurements.nbytes)

    def _tell_of_cpus(self, frame: NodeFrame) -> None:
        """Of pods that say of CPUs what does not hold, and of a node where pods own all: in the log, and by one Event each."""
        claims = frame.owned().claims
        for part, claim in claims.items():
            if f"cpus {part}" not in self._troubles and not self.dry_run:
                about = claim.regarding(self.watch.node)
                self.component.recorder.record(
                    about, claim.reason, claim.words, type="Warning", action="Share"
                )
        self._troubles_of("cpus", {part: claim.words for part, claim in claims.items()})

    def _troubles_of(self, what: str, found: Mapping[str, str]) -> None:
        """All there are of one sort now, by part: others are over."""
        wrong = {f"{what} {part}": why for part, why in found.items()}
        for name in [one for one in self._troubles if one.startswith(f"{what} ") and one not in wrong]:
            del self._troubles[name]
        for name, why in wrong.items():
            self._trouble(name, why)

    def _trouble(self, name: str, why: str) -> None:
        if why and not self._troubles.get(name):
            LOG.warning("%s: %s", name, why)
        self._troubles[name] = why


def _reserved(annotations: Mapping[str, str]) -> frozenset[int]:
    try:
        found = node_reservation(annotations)
    except ObjectError:
        return frozenset()  # an unreadable reservation keeps no CPUs
    return frozenset() if found is None else found.reserved_cpus
