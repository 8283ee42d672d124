"""Nodes as machines, and the pods that run on them: how far these get, and when they are done."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from koordpolicy.algorithms.container_resources import PERIOD, UNLIMITED
from koordpolicy.model.cpuset import HIGHEST_CPU
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import CPU, MEMORY
from koordpolicy.model.topology import Processor
from koordpolicy.simulator.usage import UsageShape

PodKey = tuple[str, str]

CPUS_PER_SOCKET = 64
"""Processors of one socket and NUMA node, two to a core; the traces say nothing of it."""

LEAST_RATE = 0.01
"""Work that gets less of its wish than this stands still."""


class Stopping(StrEnum):
    """For what a pod was deleted before its work was done."""

    PREEMPTED = "preempted"
    """A pod of a higher priority takes its place."""
    EVICTED = "evicted"
    """The agent of its node let it go."""
    LOST = "lost"
    """Its node is lost."""
    MOVED = "moved"
    """The descheduler let it go."""


@dataclass(slots=True)
class RunningPod:
    """A pod on a node.

    `slot` is its place in the population, `priority` and `qos` are the class names that agents report.
    `remaining` are the nanoseconds it still needs at full speed (None: it never ends), as of `since`; `rate`
    is its speed; `request` is the CPU that it asks for. `ticket` tells which of its planned ends is still meant. One that is `stopping` was deleted, and works
    on until its time to stop is over; it says for what. CPU in millicores, memory in bytes.
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
    stopping: Stopping | None = None
    request: int = 0

    @property
    def is_service(self) -> bool:
        """Whether somebody waits for its answers: it is no best-effort work, and has no end."""
        return not self.best_effort and self.remaining is None

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
    """What its agent reported last, where one runs."""
    shares: Shares = NOTHING_SHARED
    """How its kernel divided CPU, where there is a model of one."""
    index: int = 0
    """Its place among all machines."""

    def limit(self) -> int:
        """What the best-effort group may use by its CPUs and its quota, in millicores."""
        by_cpus = 1000 * len(self.cpuset) if len(self.cpuset) < len(self.processors) else self.cpu
        return by_cpus if self.quota == UNLIMITED else min(by_cpus, self.quota * 1000 // PERIOD)


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
