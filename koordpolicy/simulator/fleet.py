"""All machines at once: who gets how much CPU, how far pods get with it, what agents would measure; arrays instead of objects.

Pods outside the best-effort group use what they wish, in proportion where the node is full. Pods in it
(Kubernetes' class BestEffort, as kubelets sort them) share what their group's CPUs or quota and the others
leave. Work that gets half of what it wishes takes twice as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.cluster.column_reports import ColumnReports
from koordpolicy.model.distinct import among
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.protocol import CPU, MEMORY
from koordpolicy.simulator.machines import Machine, RunningPod, Shares

Whole = NDArray[np.int64]
Real = NDArray[np.float64]

NOT_MEASURED: Final = -1
"""What a pod used that came after the last reports."""

_PER_SLOT: Final = (
    ("_node", 0),
    ("_memory", 0),
    ("_band", 0),
    ("_group", False),
    ("_there", False),
    ("_cpu", NOT_MEASURED),
    ("_measured", NOT_MEASURED),
    ("_rate", 1),
    ("_workers", 0),
)


class Fleet:
    """The machines in a fixed order, and by slot the pods on them; a slot is a pod's place in the population."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self.machines: Sequence[Machine] = tuple(machines)
        self.names: Sequence[str] = tuple(one.name for one in self.machines)
        for at, machine in enumerate(self.machines):
            machine.index = at
        self._by_name: Mapping[str, Machine] = {one.name: one for one in self.machines}
        self.cpu = np.array([one.cpu for one in self.machines], np.int64)
        self.memory = np.array([one.memory for one in self.machines], np.int64)
        self.system_cpu = np.array([one.system_cpu for one in self.machines], np.int64)
        self.system_memory = np.array([one.system_memory for one in self.machines], np.int64)
        count = len(self.machines)
        self.others, self.wished, self.given = (np.zeros(count, np.int64) for _ in range(3))
        self.limit = np.array([one.limit() for one in self.machines], np.int64)
        self.used_memory = self.system_memory.copy()
        self.short = np.zeros(count, np.bool_)
        """Where pods outside the best-effort group get less than they wish."""
        self.at = 0
        """When the last reports were made, in nanoseconds since 1970."""
        self._size = 0
        self._pods: list[RunningPod | None] = []
        self._node, self._memory, self._band, self._workers = (np.zeros(256, np.int64) for _ in range(4))
        self._group, self._there = (np.zeros(256, np.bool_) for _ in range(2))
        self._cpu, self._measured = (np.full(256, NOT_MEASURED, np.int64) for _ in range(2))
        self._reported = self.system_cpu.copy()
        self._rate = np.ones(256)
        self._bands: dict[str, int] = {}

    # --- pods -------------------------------------------------------------------------------------

    def add(self, pod: RunningPod, band: str) -> None:
        """A pod begins on its machine."""
        slot = pod.slot
        while slot >= len(self._node):
            self._grow()
        self._size = max(self._size, slot + 1)
        self._pods.extend([None] * (self._size - len(self._pods)))
        self._pods[slot] = pod
        self._node[slot], self._memory[slot] = pod.machine.index, pod.memory
        self._group[slot], self._there[slot] = pod.best_effort, True
        self._workers[slot] = -(-pod.request // 1000) if pod.is_service else 0
        self._band[slot] = self._bands.setdefault(band, len(self._bands))
        self._cpu[slot] = self._measured[slot] = NOT_MEASURED
        pod.rate = self._rate[slot] = self.rate(pod.machine) if pod.best_effort else 1.0

    def remove(self, slot: int) -> None:
        """A pod is gone."""
        self._pods[slot] = None
        self._there[slot] = self._group[slot] = False
        self._memory[slot] = self._node[slot] = self._workers[slot] = 0
        self._cpu[slot] = self._measured[slot] = NOT_MEASURED
        self._rate[slot] = 1.0

    def rate(self, machine: Machine) -> float:
        """The speed of pods in the best-effort group of a machine: their share of what they wish."""
        wished = self.wished[machine.index]
        return float(self.given[machine.index] / wished) if wished else 1.0

    @property
    def pods(self) -> int:
        """How many pods there are on machines."""
        return int(np.count_nonzero(self._there))

    def bands(self) -> Iterable[str]:
        """The bands of all pods that there have been."""
        return self._bands

    # --- what they get ----------------------------------------------------------------------------

    def share(self, wishes: Real) -> None:
        """Let every pod use what it gets of its wish (by slot, in millicores)."""
        count, size = len(self.machines), self._size
        node, grouped = self._node[:size], self._group[:size]
        wishes = np.where(self._there[:size], wishes[:size], 0.0)
        others = np.bincount(node, np.where(grouped, 0.0, wishes), count)
        group = np.bincount(node, np.where(grouped, wishes, 0.0), count)
        room = (self.cpu - self.system_cpu).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.short = others > room
            factor = np.where(others > room, room / others, 1.0)
            used = (others * factor).astype(np.int64)
            given = np.maximum(np.minimum(np.minimum(group, self.limit), room - used), 0.0)
            rate = np.where(group > 0, given / group, 1.0)
        self.others, self.wished, self.given = used, group.astype(np.int64), given.astype(np.int64)
        cpu = (wishes * np.where(grouped, rate[node], factor[node])).astype(np.int64)
        self._cpu[:size] = np.where(self._there[:size], cpu, NOT_MEASURED)

    def reported(self, wishes: Real) -> Real:
        """The wishes of the pods that the last reports tell of, by slot; those that came later have none yet."""
        size = self._size
        known = np.zeros(max(size, len(wishes)))
        known[: len(wishes)] = wishes
        known[:size][self._measured[:size] == NOT_MEASURED] = 0.0
        return known

    def measure(self, now: int) -> None:
        """Fix what reports of this moment say."""
        self.at = now
        self.used_memory = self.held_memory()
        self._reported = self.used
        self._measured[: self._size] = self._cpu[: self._size]

    def held_memory(self) -> Whole:
        """All memory in use now by machine, in bytes."""
        size = self._size
        held = np.bincount(self._node[:size], self._memory[:size], len(self.machines))
        return np.asarray(self.system_memory + held.astype(np.int64))

    def turned(self) -> Iterable[tuple[RunningPod, float]]:
        """The pods whose speed is another than it was when somebody last asked, with the new one."""
        size = self._size
        with np.errstate(divide="ignore", invalid="ignore"):
            by_node = np.where(self.wished > 0, self.given / self.wished, 1.0)
        rates = np.where(self._group[:size], by_node[self._node[:size]], 1.0)
        changed = np.flatnonzero(rates != self._rate[:size])
        self._rate[:size] = rates
        for slot, rate in zip(changed.tolist(), rates[changed].tolist(), strict=True):
            pod = self._pods[slot]
            if pod is not None:
                yield pod, rate

    def note(self, machine: Machine, shares: Shares) -> None:
        """What the kernel of a machine with an agent of its own divided."""
        at = machine.index
        self.others[at], self.wished[at], self.given[at] = shares.others, shares.wished, shares.given
        self.limit[at] = shares.limit
        for pod in machine.pods.values():
            self._cpu[pod.slot], self._memory[pod.slot] = pod.cpu, pod.memory

    # --- what is seen -----------------------------------------------------------------------------

    @property
    def used(self) -> Whole:
        """All CPU in use by machine, in millicores."""
        return self.system_cpu + self.others + self.given

    @property
    def withheld(self) -> Whole:
        """What best-effort groups would have used beyond their limits, by machine."""
        return np.maximum(self.wished - np.maximum(self.limit, self.given), 0)

    def hosting(self) -> NDArray[np.bool_]:
        """The machines with pods in the best-effort group."""
        size = self._size
        return np.bincount(self._node[:size], self._group[:size], len(self.machines)) > 0

    def services(self) -> tuple[Whole, Whole, Whole, Whole]:
        """The services: their slots, whole CPUs that they request, their nodes, and millicores that they use."""
        slots = np.flatnonzero(self._workers[: self._size])
        return slots, self._workers[slots], self._node[slots], self._cpu[slots]

    def cpu_of(self, slots: Whole) -> Whole:
        """What pods were measured to use, by slot."""
        return np.asarray(self._measured[slots])

    def over(self, machines: Whole) -> ColumnReports:
        """The reports of some machines, of the moment of the last `measure`."""
        size, count = self._size, len(self.machines)
        measured = self._measured[:size] >= 0
        node, cpu, memory, band = (
            one[:size][measured] for one in (self._node, self._measured, self._memory, self._band)
        )

        def of_bands(names: frozenset[str]) -> Mapping[str, Whole]:
            codes = [code for name, code in self._bands.items() if name in names]
            inside = among(band, codes)
            return {
                CPU: np.bincount(node[inside], cpu[inside], count).astype(np.int64),
                MEMORY: np.bincount(node[inside], memory[inside], count).astype(np.int64),
            }

        every = ColumnReports(
            self.names,
            self.at,
            NodeMetric("").report_interval,
            {CPU: self._reported, MEMORY: np.minimum(self.used_memory, self.memory)},
            {CPU: self.system_cpu, MEMORY: self.system_memory},
            lambda names: dict(of_bands(names)),
            np.bincount(node, minlength=count),
            self._report_of,
        )
        return every if len(machines) == count else every.some(machines)

    def _report_of(self, name: str) -> NodeMetric:
        return self.report(self._by_name[name])

    def report(self, machine: Machine) -> NodeMetric:
        """What the agent of a machine reported last."""
        at = machine.index
        return NodeMetric(
            machine.name,
            self.at,
            node_usage={CPU: int(self._reported[at]), MEMORY: min(int(self.used_memory[at]), machine.memory)},
            system_usage={CPU: machine.system_cpu, MEMORY: machine.system_memory},
            pods=tuple(
                PodMetric(*pod.key, {CPU: cpu, MEMORY: pod.memory}, pod.priority, pod.qos)
                for pod in machine.pods.values()
                if (cpu := int(self._measured[pod.slot])) >= 0
            ),
        )

    def shares(self, machine: Machine) -> Shares:
        """How a machine's CPU is shared now."""
        at = machine.index
        return Shares(int(self.others[at]), int(self.wished[at]), int(self.given[at]), int(self.limit[at]))

    def _grow(self) -> None:
        for name, filler in _PER_SLOT:
            old = getattr(self, name)
            fresh = np.full_like(old, filler)
            setattr(self, name, np.concatenate([old, fresh]))
