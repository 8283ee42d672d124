"""A model of nodes: who gets how much CPU, how far pods get with it, what the agents would measure.

Pods outside the best-effort group use what they wish, in proportion where the node is full. Pods in it
(Kubernetes' class BestEffort, as kubelets sort them) share what their group's CPUs or quota and the others
leave. Work that gets half of what it wishes takes twice as long.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.container_resources import PERIOD, UNLIMITED
from koordpolicy.model.cpuset import HIGHEST_CPU
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import CPU, MEMORY
from koordpolicy.model.topology import Processor
from koordpolicy.simulator.usage import UsageShape

PodKey = tuple[str, str]

CPUS_PER_SOCKET = 64
"""Processors of one socket and NUMA node, two to a core; the traces say nothing of it."""

LEAST_RATE = 0.01
"""Work that gets less of its wish than this stands still."""


@dataclass(slots=True)
class RunningPod:
    """A pod on a node.

    `slot` is its place in the population, `priority` and `qos` are the class names that agents report.
    `remaining` are the nanoseconds it still needs at full speed (None: it never ends), as of `since`; `rate`
    is its speed. `ticket` tells which of its planned ends is still meant. One that is `stopping` was deleted, and works
    on until its time to stop is over. CPU in millicores, memory in bytes.
    """

    key: PodKey
    machine: "Machine"
    slot: int
    best_effort: bool
    memory: int
    priority: str
    qos: str
    since: int
    remaining: float | None = None
    rate: float = 1.0
    ticket: int = 0
    cpu: int = 0
    stopping: bool = False

    def advance(self, now: int, rate: float) -> bool:
        """Count what was done at the speed so far, and go on at another; whether the speed changed."""
        changed = rate != self.rate
        if self.remaining is not None and changed:
            self.remaining = max(self.remaining - (now - self.since) * self.rate, 0.0)
            self.since = now
        self.rate = rate
        return changed

    def end(self) -> int | None:
        """When it is done at this speed; None for never."""
        if self.remaining is None or self.rate < LEAST_RATE:
            return None
        return self.since + int(self.remaining / self.rate)


@dataclass(frozen=True, slots=True)
class Shares:
    """How a node's CPU is shared at one moment, in millicores.

    `wished` is what the best-effort group wishes and `given` what it gets, `limit` what it may use at most;
    `others` is what all other pods use.
    """

    others: int
    wished: int
    given: int
    limit: int

    @property
    def withheld(self) -> int:
        """What the group would have used beyond its limit."""
        return max(self.wished - max(self.limit, self.given), 0)


NOTHING_SHARED = Shares(0, 0, 0, 0)


@dataclass(slots=True)
class Machine:
    """One node: its hardware, its pods, and what its kernel holds for the best-effort group."""

    name: str
    cpu: int
    memory: int
    system_cpu: int
    system_memory: int
    processors: tuple[Processor, ...]
    cpuset: frozenset[int]
    quota: int = UNLIMITED
    pods: dict[PodKey, RunningPod] = field(default_factory=dict)
    metric: NodeMetric | None = None
    shares: Shares = NOTHING_SHARED
    awake: bool = True
    """Whether what it reports can differ from what it reported last."""

    @property
    def used(self) -> int:
        """All CPU in use, in millicores."""
        return self.system_cpu + self.shares.others + self.shares.given

    @property
    def used_memory(self) -> int:
        """All memory in use, in bytes."""
        return self.system_memory + sum(pod.memory for pod in self.pods.values())

    def limit(self) -> int:
        """What the best-effort group may use by its CPUs and its quota, in millicores."""
        by_cpus = 1000 * len(self.cpuset) if len(self.cpuset) < len(self.processors) else self.cpu
        return by_cpus if self.quota == UNLIMITED else min(by_cpus, self.quota * 1000 // PERIOD)

    def share(self, wishes: NDArray[np.float64]) -> None:
        """Let every pod use what it gets of its wish (by slot, in millicores)."""
        room = self.cpu - self.system_cpu
        others, group = self._divided(wishes)
        factor = min(1.0, room / others) if others else 1.0
        used = int(others * factor)
        limit = self.limit()
        given = max(min(group, float(limit), float(room - used)), 0.0)
        rate = given / group if group else 1.0
        for pod in self.pods.values():
            pod.cpu = int(wishes[pod.slot] * (rate if pod.best_effort else factor))
        self.shares = Shares(used, int(group), int(given), limit)

    def rate(self, pod: RunningPod) -> float:
        """The speed of a pod: its share of what it wishes."""
        if not pod.best_effort or not self.shares.wished:
            return 1.0
        return self.shares.given / self.shares.wished

    def report(self, now: int) -> NodeMetric:
        """What the node's agent would report at this time."""
        self.metric = NodeMetric(
            self.name,
            now,
            node_usage={CPU: self.used, MEMORY: min(self.used_memory, self.memory)},
            system_usage={CPU: self.system_cpu, MEMORY: self.system_memory},
            pods=tuple(
                PodMetric(*pod.key, {CPU: pod.cpu, MEMORY: pod.memory}, pod.priority, pod.qos)
                for pod in self.pods.values()
            ),
        )
        return self.metric

    def _divided(self, wishes: NDArray[np.float64]) -> tuple[float, float]:
        """The wishes of pods outside and inside the best-effort group."""
        others = group = 0.0
        for pod in self.pods.values():
            if pod.best_effort:
                group += wishes[pod.slot]
            else:
                others += wishes[pod.slot]
        return others, group


def machine_of(node: Node, shape: UsageShape) -> Machine:
    """The machine behind a node object."""
    cpu, memory = node.capacity.get(CPU, 0), node.capacity.get(MEMORY, 0)
    processors = tuple(_processors(min(max(cpu // 1000, 1), HIGHEST_CPU + 1)))
    return Machine(
        node.name,
        cpu,
        memory,
        int(cpu * shape.system_cpu),
        int(memory * shape.system_memory),
        processors,
        frozenset(one.cpu for one in processors),
    )


def _processors(count: int) -> Iterable[Processor]:
    for cpu in range(count):
        socket = cpu // CPUS_PER_SOCKET
        yield Processor(cpu, cpu // 2, socket, socket)
