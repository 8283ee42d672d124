"""Carries out what strategies want: writes through the door, evictions through the API; tells of both."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from koordpolicy.agent.apply import GroupPaths, apply
from koordpolicy.agent.audit.log import AuditEvent, AuditLevel, AuditLog, AuditSubject
from koordpolicy.agent.elsewhere import Maker, made, others_quiet_until, undone
from koordpolicy.agent.failing_writes import FAILED, FailingWrites, regarding
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_strategies import NodeStrategy
from koordpolicy.agent.plan import BEST_EFFORT, Eviction, Group, Notice, Plan, Write
from koordpolicy.agent.quiet import QuietKinds
from koordpolicy.agent.stopping import PodStops
from koordpolicy.agent.strategies.arbiter import KIND as ARBITRATION
from koordpolicy.agent.strategies.arbiter import WantedFile, settle
from koordpolicy.agent.strategies.cpu_burst import BURST_FILE
from koordpolicy.agent.strategies.cpu_burst import KIND as BURST
from koordpolicy.agent.strategies.cpu_isolation import COOKIE
from koordpolicy.agent.strategies.eviction_need import Needs
from koordpolicy.agent.strategies.evictions import EvictionMemory, EvictionOutcome, evict_by_needs
from koordpolicy.agent.unchanged import read_facts
from koordpolicy.kube.errors import KubeError, NotFound, Unreachable
from koordpolicy.kube.event_correlator import EventRecorder
from koordpolicy.kube.port import Cluster, Preconditions
from koordpolicy.linux.files.kernel_file import FilePlace, FileWriter
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.writes.write import FileOutcome, FileWriteResult, WriteDoor
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.runtime.counting import Counters

LOG: Final = logging.getLogger(__name__)

EVICTED, NOT_EVICTED = "evictPodSuccess", "evictPodFail"
"""Reasons of Events, as dashboards of Koordinator know them."""
_STOP, _EITHER = "Stop", "EvictionOrStop"
_PERIOD: Final = 100_000
"""Microseconds of quotas."""
_TOLD: Final = frozenset({FileOutcome.WRITTEN, FileOutcome.PLANNED, FileOutcome.REFUSED, FileOutcome.FAILED})
_GIVEN: Final = frozenset({FileOutcome.WRITTEN, FileOutcome.FAILED})
_MOST_TOLD: Final = 1000
"""Evicted pods, and groups with cookies, that are remembered by name."""
_MOST_ROUNDS: Final = 1000
"""Pods that are asked to go in one round: each asks the API server."""


Told = Callable[[str, NodeFrame], AbstractContextManager[None]]
"""What hears of the decisions of a kind, and lets none that fails get further."""


@dataclass(slots=True)
class CarryingOut:
    """Does what plans say; in a `dry_run` it only tells of it. `began` is in nanoseconds since 1970.

    `results` are those of the last round that each writer took part in, for whoever explains the node.
    """

    cluster: Cluster
    recorder: EventRecorder
    audit: AuditLog
    metrics: Counters
    began: int
    node: str = ""
    dry_run: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    """Evictions by reason."""
    evicted: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """The same of the pods that were evicted last, by namespace, name and reason."""
    cookies: dict[tuple[str, bool], int] = field(default_factory=dict)
    """How often cookies of core scheduling were given or taken, by who shares them, and whether that succeeded."""
    suppressed: dict[str, float] = field(default_factory=dict)
    """Cores that were left to best-effort work last, by mechanism."""
    results: dict[str, list[FileWriteResult]] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    """What each kind wanted last."""
    notes: tuple[str, ...] = ()
    failing: FailingWrites = field(default_factory=FailingWrites)
    """Files that do not take what is wanted there."""
    _quiet: QuietKinds = field(default_factory=QuietKinds)
    _conflicts: dict[WantedFile, str] = field(default_factory=dict)
    """Files that several strategies want otherwise, and in words who decides."""
    memories: dict[str, EvictionMemory] = field(default_factory=dict)
    makers: Mapping[str, Maker] = field(default_factory=dict)
    """Who makes what no kernel file takes."""
    stops: PodStops | None = None

    @property
    def best_effort_cpu(self) -> int | None:
        """Millicores that were left to best-effort work last; None where nothing was written for it."""
        least = min(self.suppressed.values(), default=None)
        return None if least is None else round(least * 1000)

    async def round(self, strategies: Sequence[NodeStrategy], frame: NodeFrame, told: Told) -> None:
        """One round of some strategies, `told` around the decisions of each kind. What policy cannot decide changes nothing."""
        self.end_stopped(frame.now, frame.monotonic)
        plans: dict[str, Plan] = {}
        for strategy in strategies:
            with told(strategy.kind, frame):
                if strategy.plan is not None:
                    plans[strategy.kind] = strategy.plan(frame)
                elif strategy.needs is not None and frame.trusted:
                    await self.evict(strategy, strategy.needs(frame), frame)
        if plans:
            with told(ARBITRATION, frame):
                self.write(plans, frame)

    def write(self, kinds: Mapping[str, Plan], frame: NodeFrame) -> None:
        """Make what some kinds want now, of what the others hold nothing. Raises `CelError` where policy cannot settle it.

        Who wants what it wanted last is left alone before a file has to be looked at again, and so are all that share no file
        with one who wants something else.
        """
        before = dict(self.plans)
        self.plans.update({kind: plan for kind, plan in kinds.items() if plan != before.get(kind)})
        read = read_facts(frame.graph, (ARBITRATION,))
        facts = read.values("node", frame.record) if read.timeless else None
        scene = (frame.graph, frame.pods)
        due = self._quiet.due(kinds, self.plans, before, (scene, facts), frame.monotonic)
        if not due:
            return
        plans = [
            plan if kind in kinds else Plan(holds=_held(plan))
            for kind, plan in self.plans.items()
            if kind in due
        ]
        settled = settle(frame.graph, plans, frame.record, frame.now)
        for place in self._quiet.places(due):
            self._conflicts.pop(place, None)
        for conflict in settled.conflicts:
            self.metrics.add("koordpolicy_file_conflicts_total", file=conflict.file, winner=conflict.winner)
            self._conflicts[conflict.file, conflict.group] = conflict.words
        self.notes = (
            *(note for plan in self.plans.values() for note in plan.notes),
            *self._conflicts.values(),
        )
        found: dict[str, list[FileWriteResult]] = {}
        # What is no file goes first: files of a group need the group.
        others = made(settled.plan.writes, self.makers, frame.kernel, frame.pods)
        applied = apply(settled.plan, frame.kernel.door, frame.kernel.groups(frame.pods))
        for result in (*others, *applied.results):
            writer = str(result.write.writer)
            found.setdefault(writer, []).append(result)
            self.metrics.add("koordpolicy_kernel_writes_total", writer=writer, outcome=str(result.outcome))
            if result.outcome in _TOLD:
                self._told_of(result, frame.now)
            if result.write.file == COOKIE and result.outcome in _GIVEN:
                key = (str(result.write.value), result.outcome is FileOutcome.WRITTEN)
                self.cookies[key] = self.cookies.pop(key, 0) + 1
                while len(self.cookies) > _MOST_TOLD:
                    del self.cookies[next(iter(self.cookies))]
        self._tell_of_failures([*others, *applied.results], frame)
        until = min(
            frame.kernel.door.quiet_until(applied.results), others_quiet_until(others, frame.monotonic)
        )
        self._quiet.settled(due & kinds.keys(), self.plans, (scene, facts), until)
        self.results.update(found)
        for write in settled.plan.writes:
            self._show(write)
        for kind, plan in kinds.items():
            for notice in plan.notices if kind in due else ():
                self._notify(notice, frame.now)

    def _tell_of_failures(self, results: Sequence[FileWriteResult], frame: NodeFrame) -> None:
        """In the log and by an Event, of what fails again and again; what nobody wants any more is forgotten."""
        for one in self.failing.heard(results, frame.monotonic):
            LOG.warning("%s", one.words)
            if not self.dry_run:
                about = regarding(one, frame.pods, self.node)
                self.recorder.record(about, FAILED, one.words, type="Warning", action="Write")
        if self.failing:
            paths = frame.kernel.groups(frame.pods)
            wanted = {(one.file, one.group) for plan in self.plans.values() for one in plan.writes}
            files = {file for file, _group in wanted}
            targets = {(file, paths.path(group) or "") for file, group in wanted}
            self.failing.keep(
                lambda file, target: file in files and (not _of_groups(file) or (file, target) in targets)
            )

    def look_again(self) -> None:
        """Groups have come or gone: what was not there may be there now."""
        self._quiet.clear()

    def undo(self, now: int) -> int:
        """Undo at the stop what no kernel file takes and would hurt; how much that was. Raises nothing: the audit log says it."""
        results = undone(self.makers, "the agent stops")
        for result in results:
            if result.outcome in _TOLD:
                self._told_of(result, now)
        return sum(result.outcome is FileOutcome.WRITTEN for result in results)

    def end_bursts(self, door: WriteDoor, paths: GroupPaths) -> int:
        """Let containers save up nothing any more, as the kernel takes no quota below that of others; how many files that were."""
        plan = self.plans.get(BURST, Plan())
        ended = [
            replace(one, value=0, otherwise=None, reason="the agent stops")
            for one in plan.writes
            if one.file == BURST_FILE
        ]
        results = apply(Plan(ended), door, paths).results
        return sum(one.outcome is FileOutcome.WRITTEN for one in results)

    async def evict(self, strategy: NodeStrategy, needs: Needs, frame: NodeFrame) -> None:
        """Let pods go. Each is asked of the API server before the next one counts.

        Raises `CelError` where policy cannot decide.
        """
        kind = strategy.kind
        memory = self.memories.get(kind, EvictionMemory(self.began))
        refused: set[tuple[str, str, str]] = set()
        gone: list[Eviction] = []
        outcome = EvictionOutcome(Plan(), memory)
        for _ in range(_MOST_ROUNDS):
            # The round is planned anew without those whom the API server has kept.
            outcome = evict_by_needs(
                frame.graph,
                kind,
                needs,
                frame.record,
                memory,
                frame.now,
                lambda one: _key(one) not in refused,
            )
            next_one = next((one for one in outcome.plan.evictions if one not in gone), None)
            if next_one is None:
                break
            if await self._evict(next_one, frame):
                gone.append(next_one)
            else:
                refused.add(_key(next_one))
        if outcome.plan != self.plans.get(kind):
            self.plans[kind] = outcome.plan
        self.memories[kind] = memory if self.dry_run else outcome.memory

    def _show(self, write: Write) -> None:
        """Keep what suppression leaves to best-effort work."""
        if write.strategy != FileWriter.CPU_SUPPRESS or write.group != BEST_EFFORT:
            return
        if isinstance(write.value, frozenset):
            kind, cores = "cpuset", float(len(write.value))
        elif isinstance(write.value, int) and write.value > 0:
            kind, cores = "cfsQuota", write.value / _PERIOD
        else:
            self.suppressed.pop("cfsQuota", None)  # no quota holds it back any more
            return
        self.suppressed[kind] = cores

    def _told_of(self, result: FileWriteResult, now: int) -> None:
        before = "" if result.before is None else f" from {result.before.strip()[:200]}"
        problem = f": {result.problem}" if result.problem else ""
        verb = "would be set" if result.outcome is FileOutcome.PLANNED else str(result.outcome)
        value = result.write.value
        wanted = cpuset_text(value) if isinstance(value, frozenset) else value
        shown = f"{result.held[:200]} ({wanted} was asked for)" if result.held else wanted
        writer = result.write.writer
        self.audit.add(
            AuditEvent(
                now,
                AuditLevel.SUPPRESSION if writer is FileWriter.CPU_SUPPRESS else AuditLevel.WRITE,
                AuditSubject.GROUP if result.write.target else AuditSubject.NODE,
                str(writer),
                f"{result.path or result.write.file} {verb} to {shown}{before}: {result.write.reason}{problem}",
                name=result.write.target,
            )
        )

    async def _evict(self, one: Eviction, frame: NodeFrame) -> bool:
        """Let a pod go, as policy says how; whether it goes. In a dry run all would."""
        now = frame.now
        if self.dry_run:
            self._audit(one, now, f"would be evicted: {one.reason}")
            return True
        problem = self._stop(one, frame) if one.by == _STOP else await self._ask(one, frame)
        if problem:
            self.recorder.record(
                _reference(one), NOT_EVICTED, f"{one.reason}: {problem}", type="Warning", action="Evict"
            )
            self._audit(one, now, f"not evicted for {one.reason}: {problem}")
            return False
        self.metrics.add("koordpolicy_evictions_total", reason=one.reason)
        self.counts[one.reason] = self.counts.get(one.reason, 0) + 1
        detail = (one.namespace, one.name, one.reason)
        self.evicted[detail] = self.evicted.pop(detail, 0) + 1
        while len(self.evicted) > _MOST_TOLD:
            del self.evicted[next(iter(self.evicted))]
        self.recorder.record(
            _reference(one), EVICTED, f"evicted for {one.reason}", type="Warning", action="Evict"
        )
        self._audit(one, now, f"evicted for {one.reason}")
        return True

    async def _ask(self, one: Eviction, frame: NodeFrame) -> str:
        """Ask the API server to let a pod go, and why it does not; where it is out of reach, stop it if policy says so."""
        try:
            await self.cluster.evict(one.namespace, one.name, preconditions=Preconditions(uid=one.uid))
        except NotFound:
            return ""
        except Unreachable as error:
            return self._stop(one, frame) if one.by == _EITHER else error.message
        except KubeError as error:
            return error.message
        return ""

    def _stop(self, one: Eviction, frame: NodeFrame) -> str:
        pod = frame.pods.get(one.uid)
        if pod is None or self.stops is None:
            return "its containers are not known here"
        return self.stops.begin(pod, frame.monotonic)

    def end_stopped(self, now: int, monotonic: int) -> None:
        """End what was asked to end for long enough."""
        for said in () if self.stops is None else self.stops.turn(monotonic):
            self.audit.add(AuditEvent(now, AuditLevel.EVICTION, AuditSubject.GROUP, "stop", said))

    def _notify(self, one: Notice, now: int) -> None:
        if not self.dry_run:
            self.recorder.record(_reference(one), one.reason, one.message, type="Warning", action="Watch")
        self.audit.add(
            AuditEvent(
                now, AuditLevel.POLICY, AuditSubject.POD, one.reason, one.message, one.namespace, one.name
            )
        )

    def _audit(self, one: Eviction, now: int, message: str) -> None:
        self.audit.add(
            AuditEvent(
                now, AuditLevel.EVICTION, AuditSubject.POD, one.strategy, message, one.namespace, one.name
            )
        )


def _of_groups(file: str) -> bool:
    """Whether the targets of a file are paths of groups."""
    return file in KERNEL_FILES and KERNEL_FILES[file].place is FilePlace.CGROUP


def _held(plan: Plan) -> Mapping[tuple[str, Group], str]:
    """What a strategy that has no turn now decides about: what it wrote and held in its last one."""
    return {**{(write.file, write.group): write.strategy for write in plan.writes}, **plan.holds}


def _key(one: Eviction) -> tuple[str, str, str]:
    return (one.namespace, one.name, one.uid)


def _reference(one: Eviction | Notice) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": one.namespace, "name": one.name, "uid": one.uid},
    }
