"""What the usage collectors read, of a kernel's files."""

from collections.abc import Mapping
from typing import NamedTuple

from koordpolicy.algorithms.throttling import Periods
from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.errors import NoSuchFile
from koordpolicy.linux.files.forms import UNLIMITED
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.readings.fields import NumberPicker
from koordpolicy.linux.readings.group_usage import (
    COUNTED,
    cpu_usage_of,
    group_memory_of,
    throttling_of,
)
from koordpolicy.linux.readings.held import HeldFiles
from koordpolicy.linux.readings.processes import (
    MEMINFO,
    STAT,
    NodeCpuTicks,
    cpu_ticks_of,
    memory_info_of,
    zone_memory_of,
    zone_memory_path,
)
from koordpolicy.linux.readings.topology import read_node_cpus
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.time import NANOSECONDS

_TICKS = 100
"""A second, as programs see it."""
_PERIOD = 100_000
"""Microseconds: the kernel's usual period of quotas."""


class MemoryUse(NamedTuple):
    """Bytes: without page cache, and with all of it."""

    used: int
    with_cache: int


class KernelUsage:
    """A `UsageReader`, over files that are held open. CPU times are read once for the node and its zones; which CPUs a zone
    has, once a process.
    """

    def __init__(self, root: KernelRoot, hierarchy: Hierarchy, files: HeldFiles) -> None:
        self.root = root
        self.hierarchy = hierarchy
        self.files = files
        self._ticks: NodeCpuTicks | None = None
        self._zones: Mapping[int, frozenset[int]] | None = None
        below = hierarchy.version is CgroupVersion.V1  # which counts a group alone under the plain names
        self._counts_nanoseconds = below
        self._memory = NumberPicker([f"total_{name}" if below else name for name in COUNTED])
        self._throttled = NumberPicker(("nr_periods", "nr_throttled"))

    def node_cpu(self) -> float:
        """See `UsageReader.node_cpu`."""
        self._ticks = cpu_ticks_of(self._plain(STAT))
        return self._ticks.all.busy / _TICKS

    def node_memory(self) -> MemoryUse:
        """See `UsageReader.node_memory`."""
        found = memory_info_of(self._plain(MEMINFO))
        return MemoryUse(found.used, found.used_with_page_cache)

    def zone_cpu(self) -> Mapping[int, float]:
        """See `UsageReader.zone_cpu`; as of the last `node_cpu`."""
        by_cpu = {} if self._ticks is None else self._ticks.by_cpu
        return {
            zone: sum(by_cpu[cpu].busy for cpu in cpus if cpu in by_cpu) / _TICKS
            for zone, cpus in self._cpus_of_zones().items()
        }

    def zone_memory(self) -> Mapping[int, int]:
        """See `UsageReader.zone_memory`."""
        return {
            zone: zone_memory_of(zone, self._plain(zone_memory_path(zone))).used
            for zone in self._cpus_of_zones()
        }

    def group_cpu(self, group: str) -> float:
        """See `UsageReader.group_cpu`."""
        place, content = self.files.located("cpuacct.usage", group)
        if self._counts_nanoseconds:
            try:
                return int(content) / NANOSECONDS
            except ValueError:
                pass  # who reads it by its form says what is wrong
        return cpu_usage_of(place, content.decode()) / NANOSECONDS

    def group_memory(self, group: str) -> MemoryUse:
        """See `UsageReader.group_memory`."""
        place, content = self.files.located("memory.stat", group)
        found = self._memory.pick(content)
        if found is None:
            counted = group_memory_of(place, content.decode())
            return MemoryUse(counted.without_page_cache, counted.with_page_cache)
        without = found[0] + found[1] + found[2]
        return MemoryUse(without, without + found[3] + found[4])

    def group_periods(self, group: str) -> Periods:
        """See `UsageReader.group_periods`."""
        _, content = self.files.located("cpu.stat", group)
        found = self._throttled.pick(content)
        if found is None:
            counted = throttling_of(content.decode())
            return Periods(counted.periods, counted.throttled)
        return Periods(found[0], found[1])

    def group_limit(self, group: str) -> int:
        """See `UsageReader.group_limit`."""
        cpus = len(group_cpus(self.files, self.hierarchy, group)) * 1000
        quota = self.files.number("cpu.cfs_quota_us", group)
        if quota == UNLIMITED:
            return cpus
        try:
            period = self.files.number("cpu.cfs_period_us", group)
        except NoSuchFile:
            period = _PERIOD
        return min(cpus, quota * 1000 // max(period, 1))

    def _plain(self, path: str) -> str:
        return self.files.plain(path).decode(errors="replace")

    def _cpus_of_zones(self) -> Mapping[int, frozenset[int]]:
        if self._zones is None:
            self._zones = read_node_cpus(self.root)
        return self._zones


def group_cpus(files: HeldFiles, hierarchy: Hierarchy, group: str) -> frozenset[int]:
    """The CPUs that a group runs on. Raises `KernelFileError`."""
    name = "cpuset.cpus" if hierarchy.version is CgroupVersion.V1 else "cpuset.effective_cpus"
    return files.cpus(name, group)
