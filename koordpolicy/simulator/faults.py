"""Faults as they happen, and what they cost.

A lost node stands still and says nothing. After the grace period of the node lifecycle controller its object says so (Ready
Unknown, the taints `unreachable`); pods that tolerate that for no longer are deleted then, each after its time, and their owners make them anew. What is simplified: such a pod
is gone at once, while on a real cluster its object stays until the node returns or is removed. Times: 40 s of grace
(--node-monitor-grace-period), 300 s of toleration (the admission plugin DefaultTolerationSeconds), unless the pod says otherwise.

In a gap of metrics the agent of a node is silent and does nothing, and so is one that starts late, of which nobody has heard before. One
that is late measures, reports and acts some seconds after the others. Errors of the API server meet the writes of the scheduler, the
descheduler and the manager about pods and nodes, whose own ways of trying again follow.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.kube.errors import Conflict, KubeError, TooManyRequests
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.protocol import TAINT_UNREACHABLE
from koordpolicy.model.reading import mapping
from koordpolicy.model.slo_config import duration_text
from koordpolicy.simulator.clock import SECOND, Agenda
from koordpolicy.simulator.cluster import SimulatedCluster
from koordpolicy.simulator.fault_plan import FaultKind, FaultPlan, PlannedFault
from koordpolicy.simulator.machines import Machine, PodKey, RunningPod, Stopping
from koordpolicy.simulator.workload import Json, WorkloadError

GRACE: Final = 40 * SECOND
TOLERATION: Final = 300 * SECOND


@dataclass(slots=True)
class FaultCounts:
    """`lost` pods were deleted with their nodes, `anew` of them have another place; `silent` are nanoseconds of nodes without reports.

    `refused` are writes that the API server refused, by code; `delayed` pods whose binding was among them.
    """

    lost: set[PodKey] = field(default_factory=set)
    anew: set[PodKey] = field(default_factory=set)
    silent: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    delayed: set[PodKey] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class _Loss:
    """A node that is lost now, by so many faults."""

    times: int = 1


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault with the nodes that it strikes."""

    fault: PlannedFault
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FaultSite:
    """What faults meet. `stop` hears of pods that are lost, `replan` of those whose speed is another, `wake` that pods may be helped.

    `report` tells what the agent of a machine said last, None where it has said nothing yet. `bring_up` hears of a machine of which
    something is about to change, so that until now it is as it was. `interval` is that of reports, in nanoseconds.
    """

    cluster: SimulatedCluster
    machines: Mapping[str, Machine]
    agenda: Agenda
    interval: int
    span: int
    report: Callable[[Machine], NodeMetric | None]
    bring_up: Callable[[Machine], None]
    pod_of: Callable[[PodKey], Json]
    stop: Callable[[RunningPod], None]
    replan: Callable[[RunningPod], None]
    wake: Callable[[], None]


class Faults:
    """Raises WorkloadError where a plan does not fit the nodes, or the time that is simulated."""

    def __init__(self, plan: FaultPlan, site: FaultSite) -> None:
        self.counts = FaultCounts()
        self._plan = plan
        self._site = site
        self._cluster = cluster = site.cluster
        self._agenda = site.agenda
        self._machines = site.machines
        self._lost: dict[str, _Loss] = {}
        self._silent: dict[str, int] = {}
        self._since: dict[str, int] = {}
        self.last: dict[str, NodeMetric] = {}
        """What the nodes that are silent reported last."""
        self._errors: list[PlannedFault] = []
        self._late: list[Struck] = []
        self._requests = 0
        labels = {name: node.labels for name, node in cluster.objects.nodes.items()}
        self.struck = tuple(
            Struck(one, () if one.kind is FaultKind.API_ERRORS else plan.nodes_of(one, labels))
            for one in plan.faults
        )
        for struck in self.struck:
            _demand_shorter(struck.fault, site.interval)
            _demand_within(struck.fault, site.span)
            if struck.fault.kind is FaultKind.LATE_START:
                for name in struck.nodes:
                    self._silent[name] = self._silent.get(name, 0) + 1
                    self._since[name] = self._agenda.now

    def begin(self, end: int) -> None:
        """Enter all that happens up to `end` into the agenda."""
        start = self._agenda.now
        for one in self.struck:
            at = start + one.fault.at
            if at <= end and one.fault.kind is not FaultKind.LATE_START:
                self._agenda.at(at, lambda one=one: self._strike(one))  # type: ignore[misc]
            if one.fault.lasts is not None and at + one.fault.lasts <= end:
                self._agenda.at(at + one.fault.lasts, lambda one=one: self._over(one))  # type: ignore[misc]

    def ended(self) -> None:
        """Count the silence that lasts to the end."""
        for name in tuple(self._since):
            self.counts.silent += self._agenda.now - self._since.pop(name)

    def is_lost(self, name: str) -> bool:
        """Whether a node stands still now."""
        return name in self._lost

    def is_silent(self, name: str) -> bool:
        """Whether nobody hears of a node now."""
        return name in self._silent

    def late(self) -> dict[str, int]:
        """By how many nanoseconds agents are late now that are heard of, by their nodes."""
        found: dict[str, int] = {}
        for one in self._late:
            for name in one.nodes:
                if name not in self._silent:
                    found[name] = max(found.get(name, 0), one.fault.delay)
        return found

    def served(self, wishes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The wishes of pods, without those on nodes that are lost."""
        if not self._lost:
            return wishes
        left = wishes.copy()
        for name in self._lost:
            left[[pod.slot for pod in self._machines[name].pods.values()]] = 0.0
        return left

    def settle(self) -> None:
        """Let the manager decide about the nodes that it does not hear of."""
        for name in self._silent:
            self._cluster.settle(name)

    def refusal(self) -> KubeError | None:
        """What the API server says of a write now, if it refuses it."""
        for fault in self._errors:
            self._requests += 1
            if self._plan.draw(f"request {self._requests}") < fault.share:
                self.counts.refused[fault.code] += 1
                return _error(fault.code)
        return None

    def placed(self, running: RunningPod) -> None:
        """A pod has a node, which may be one that is lost and that nobody misses yet."""
        if running.key in self.counts.lost:
            self.counts.anew.add(running.key)
        loss = self._lost.get(running.machine.name)
        if loss is not None:
            running.advance(self._agenda.now, 0.0)
            self._site.replan(running)
            self._evict_later(running.machine.name, loss, running)

    def failed(self, key: PodKey, error: KubeError) -> None:
        """The binding of a pod came to nothing."""
        if error.message == SAID:
            self.counts.delayed.add(key)

    # --- what happens -----------------------------------------------------------------------------

    def _strike(self, one: Struck) -> None:
        if one.fault.kind is FaultKind.API_ERRORS:
            self._errors.append(one.fault)
        if one.fault.kind is FaultKind.LATE_AGENTS:
            self._late.append(one)
            return
        for name in one.nodes:
            self._site.bring_up(self._machines[name])
            self._silence(name)
            if one.fault.kind is FaultKind.NODE_LOSS:
                self._lose(name)

    def _over(self, one: Struck) -> None:
        if one.fault.kind is FaultKind.API_ERRORS:
            self._errors.remove(one.fault)
        if one.fault.kind is FaultKind.LATE_AGENTS:
            self._late.remove(one)
            return
        for name in one.nodes:
            self._site.bring_up(self._machines[name])
            if one.fault.kind is FaultKind.NODE_LOSS:
                self._find(name)
            self._hear_again(name)
        self._site.wake()

    def _silence(self, name: str) -> None:
        self._silent[name] = self._silent.get(name, 0) + 1
        if self._silent[name] == 1:
            self._since[name] = self._agenda.now
            metric = self._site.report(self._machines[name])
            if metric is not None:
                self.last[name] = metric
                self._cluster.hear(metric)

    def _hear_again(self, name: str) -> None:
        self._silent[name] -= 1
        if not self._silent[name]:
            del self._silent[name]
            self.last.pop(name, None)
            self.counts.silent += self._agenda.now - self._since.pop(name)
            self._cluster.objects.note_changed(name)

    def _lose(self, name: str) -> None:
        now = self._agenda.now
        if name in self._lost:
            self._lost[name].times += 1
            return
        self._lost[name] = loss = _Loss()
        for pod in self._machines[name].pods.values():
            pod.advance(now, 0.0)
            self._site.replan(pod)
        self._agenda.at(now + GRACE, lambda: self._noticed(name, loss))

    def _find(self, name: str) -> None:
        self._lost[name].times -= 1
        if self._lost[name].times:
            return
        del self._lost[name]
        for pod in self._machines[name].pods.values():
            pod.advance(self._agenda.now, 1.0)
            self._site.replan(pod)
        self._cluster.say_reachable(name, reachable=True)

    def _noticed(self, name: str, loss: "_Loss") -> None:
        """The node lifecycle controller misses a node's heartbeats."""
        if self._lost.get(name) is not loss:
            return
        self._cluster.say_reachable(name, reachable=False)
        self._site.wake()
        for pod in tuple(self._machines[name].pods.values()):
            self._evict_later(name, loss, pod)

    def _evict_later(self, name: str, loss: "_Loss", pod: RunningPod) -> None:
        wait = tolerated(self._site.pod_of(pod.key))
        if wait is not None:
            self._agenda.at(self._agenda.now + wait, lambda: self._evict(name, loss, pod))

    def _evict(self, name: str, loss: "_Loss", pod: RunningPod) -> None:
        if self._lost.get(name) is loss and self._machines[name].pods.get(pod.key) is pod:
            self.counts.lost.add(pod.key)
            self.counts.anew.discard(pod.key)
            pod.stopping = Stopping.LOST
            self._site.stop(pod)


def _demand_shorter(fault: PlannedFault, interval: int) -> None:
    """Agents that are later than the next reports would never be done."""
    if fault.kind is FaultKind.LATE_AGENTS and fault.delay >= interval:
        raise WorkloadError(
            f"{fault.place}: agents that are late by {fault.delay / SECOND:g} s come after the next reports, which are made every"
            f" {interval / SECOND:g} s; write a shorter `by`, or a longer `--interval`"
        )


def _demand_within(fault: PlannedFault, span: int) -> None:
    """A fault that never begins would be told of as if it had."""
    if fault.at >= span:
        raise WorkloadError(
            f"{fault.place}: it begins at {duration_text(fault.at)}, and the simulation ends at {duration_text(span)}; write an earlier"
            " `at`, or a later end by `--until`"
        )


def tolerated(pod: Json) -> int | None:
    """How long a pod stays on a node that is unreachable, in nanoseconds; None for ever."""
    said: Any = mapping(pod, "spec").get("tolerations") or ()
    times = [
        one.get("tolerationSeconds")
        for one in said
        if one.get("key") in (None, "", TAINT_UNREACHABLE) and one.get("effect") in (None, "", "NoExecute")
    ]
    if not times:
        return TOLERATION
    limited = [max(int(one), 0) for one in times if one is not None]
    return min(limited) * SECOND if limited else None


SAID: Final = "a fault of the simulation"
"""What the API server says where it refuses a write for no other reason."""


def _error(code: int) -> KubeError:
    said = SAID
    if code == Conflict.CODE:
        return Conflict(said)
    if code == TooManyRequests.CODE:
        return TooManyRequests(said, retry_after=1.0)
    return KubeError(said, code=code)
