"""One round of the usage collectors: the node, its zones, pods, containers, host applications, best-effort work."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Final, Protocol, TypeVar

from koordpolicy.agent.collectors.kernel_reader import MemoryUse
from koordpolicy.agent.measurements.counters import RateMeter
from koordpolicy.agent.measurements.levels import NODE, ContainerKey, Measurements
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.algorithms.throttling import Periods, throttled_ratio
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.model.protocol import BATCH_CPU, QOS_CLASS
from koordpolicy.model.time import NANOSECONDS

_T = TypeVar("_T")

BEST_EFFORT_CLASS: Final = "BE"
_BEST_EFFORT: Final = ("best effort",)
_MILLI: Final = 1000
_FORGOTTEN: Final = 20
"""Intervals after which a count is too old to tell a share by."""


class UsageReader(Protocol):
    """What the kernel counts. Every method raises `KernelFileError`; groups are paths below a hierarchy."""

    def node_cpu(self) -> float:
        """Seconds that all CPUs together have worked."""
        ...

    def node_memory(self) -> MemoryUse:
        """Memory of the node in use."""
        ...

    def zone_cpu(self) -> Mapping[int, float]:
        """Seconds that the CPUs of each NUMA zone have worked."""
        ...

    def zone_memory(self) -> Mapping[int, int]:
        """Bytes in use in each NUMA zone."""
        ...

    def group_cpu(self, group: str) -> float:
        """Seconds of CPU that a group has used."""
        ...

    def group_memory(self, group: str) -> MemoryUse:
        """Memory of a group and all below it."""
        ...

    def group_periods(self, group: str) -> Periods:
        """How often a group was held back by its quota."""
        ...

    def group_limit(self, group: str) -> int:
        """Millicores that a group may use, by its CPUs and its quota."""
        ...


@dataclass(frozen=True, slots=True)
class Scene:
    """What is measured: pods by UID, groups of host applications by name, the group of best-effort pods ("" for none)."""

    pods: Mapping[str, NodePod]
    applications: Mapping[str, str]
    best_effort: str = ""


class UsageCollector:
    """Keeps the last counts, to tell rates by; those of groups by their paths. Times are nanoseconds of a monotonic clock.

    Of pods and host applications CPU and memory are measured, of containers CPU and how often they were held back: what
    somebody decides by or reports.
    """

    def __init__(self, reader: UsageReader) -> None:
        self._reader = reader
        self._cpu: RateMeter[Hashable] = RateMeter()
        self._throttling: dict[str, tuple[int, Periods]] = {}
        self.failures: dict[str, str] = {}
        """What could not be read in the last round, by part: one example of a reason."""

    def collect(
        self,
        found: Measurements,
        scene: Scene,
        now: int,
        interval: int,
        inputs_within: int,
        cold: float = nan,
    ) -> None:
        """Read everything once, and add it. What cannot be read is missing; what has ended is left out.

        `cold` are bytes of the node that nobody uses, NaN where that is not known.
        """
        self.failures = {}
        known: set[Hashable] = {(NODE,), _BEST_EFFORT}
        self._node(found, now, interval, cold)
        pods, containers = {}, {}
        for uid, one in scene.pods.items():
            known.add(one.group)
            used = self._used(one.group, one.group, now, interval)
            if used is not None:
                pods[uid] = used
            for name, group in one.containers.items():
                known.add(group)
                held_up = self._held_up(group, now, interval)
                if held_up is not None:
                    containers[ContainerKey(uid, name)] = held_up
        found.pods.add(now, pods)
        found.containers.add(now, containers)
        applications = {}
        for name, group in scene.applications.items():
            known.add(("application", name))
            used = self._used(("application", name), group, now, interval)
            if used is not None:
                applications[name] = used
        found.applications.add(now, applications)
        known.update(("zone", zone) for zone in self._zones(found, now, interval))
        if scene.best_effort:
            self._best_effort(found, scene, now, interval)
        self._cpu.keep(known)
        for gone in self._throttling.keys() - known:
            del self._throttling[gone]
        add_system(found, now, inputs_within)

    def _node(self, found: Measurements, now: int, interval: int, cold: float) -> None:
        cpu = self._read("node", self._reader.node_cpu)
        memory = self._read("node", self._reader.node_memory)
        values = (
            nan if cpu is None else self._cores((NODE,), now, cpu, interval),
            nan if memory is None else memory.used,
            nan if memory is None else memory.with_cache,
            nan if memory is None or isnan(cold) else max(memory.with_cache - cold, 0.0),
        )
        found.node.add(now, {NODE: values})

    def _zones(self, found: Measurements, now: int, interval: int) -> Sequence[int]:
        memory = self._read("zones", self._reader.zone_memory) or {}
        cpu = self._read("zones", self._reader.zone_cpu) or {}
        values = {}
        for zone in memory.keys() | cpu.keys():
            rate = self._cores(("zone", zone), now, cpu[zone], interval) if zone in cpu else nan
            values[zone] = (rate, float(memory.get(zone, nan)))
        found.zones.add(now, values)
        return list(values)

    def _best_effort(self, found: Measurements, scene: Scene, now: int, interval: int) -> None:
        cpu = self._read("best effort", lambda: self._reader.group_cpu(scene.best_effort))
        limit = self._read("best effort", lambda: self._reader.group_limit(scene.best_effort))
        rate = nan if cpu is None else self._cores(_BEST_EFFORT, now, cpu, interval)
        requested = sum(
            effective_requests(one.pod).get(BATCH_CPU, 0)
            for one in scene.pods.values()
            if one.pod.labels.get(QOS_CLASS) == BEST_EFFORT_CLASS
        )
        usage = nan if isnan(rate) else float(int(rate * _MILLI))
        found.best_effort.add(now, {NODE: (usage, float(requested), nan if limit is None else float(limit))})

    def _used(self, key: Hashable, group: str, now: int, interval: int) -> tuple[float, float, float] | None:
        """Cores, bytes, bytes with cache of a group; None where nothing can be read of it."""
        cpu, memory = self._of(group, self._reader.group_cpu), self._of(group, self._reader.group_memory)
        if cpu is None and memory is None:
            return None
        cores = nan if cpu is None else self._cores(key, now, cpu, interval)
        return (cores, nan, nan) if memory is None else (cores, float(memory.used), float(memory.with_cache))

    def _held_up(self, group: str, now: int, interval: int) -> tuple[float, float] | None:
        """Cores of a group, and the share of its periods that were throttled; None where nothing can be read of it."""
        cpu, periods = self._of(group, self._reader.group_cpu), self._of(group, self._reader.group_periods)
        if cpu is None and periods is None:
            return None
        cores = nan if cpu is None else self._cores(group, now, cpu, interval)
        return cores, nan if periods is None else self._throttled(group, periods, now, interval)

    def _of(self, group: str, read: Callable[[str], _T]) -> _T | None:
        try:
            return read(group)
        except KernelFileError as error:
            self.failures.setdefault("groups", str(error))
            return None

    def _throttled(self, group: str, periods: Periods, now: int, interval: int) -> float:
        """NaN where it was not counted before, or too long ago."""
        before = self._throttling.get(group)
        self._throttling[group] = (now, periods)
        if before is None or now - before[0] > _FORGOTTEN * interval:
            return nan
        return max(throttled_ratio(before[1], periods), 0.0)

    def _cores(self, key: Hashable, now: int, seconds: float, interval: int) -> float:
        """NaN where it was not counted before, or too long ago."""
        rate = self._cpu.rate(key, now, seconds, interval)
        return nan if rate is None else rate * NANOSECONDS

    def _read(self, part: str, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except KernelFileError as error:
            self.failures.setdefault(part, str(error))
            return None


def add_system(found: Measurements, now: int, inputs_within: int) -> None:
    """What the node uses beside its pods and host applications; nothing where the node was not measured lately."""
    totals: dict[str, float] = {}
    for measure in ("cpu", "memory"):
        node = found.node.latest(measure, now, inputs_within).get(NODE)
        if node is None:
            return
        pods = sum(found.pods.latest(measure, now, inputs_within).values())
        applications = sum(found.applications.latest(measure, now, inputs_within).values())
        totals[measure] = max(node - pods - applications, 0.0)
    found.system.add(now, {NODE: (totals["cpu"], totals["memory"])})
