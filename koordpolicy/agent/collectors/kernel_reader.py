"""What the usage collectors read, of a kernel's files."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.errors import NoSuchFile
from koordpolicy.linux.files.forms import UNLIMITED
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.readings.group_usage import (
    Throttling,
    read_cpu_usage,
    read_group_memory,
    read_throttling,
)
from koordpolicy.linux.readings.processes import (
    NodeCpuTicks,
    read_cpu_ticks,
    read_memory_info,
    read_node_memory,
)
from koordpolicy.linux.readings.topology import read_node_cpus
from koordpolicy.linux.readings.value import read_cpus, read_number
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.time import NANOSECONDS

_TICKS = 100
"""A second, as programs see it."""
_PERIOD = 100_000
"""Microseconds: the kernel's usual period of quotas."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes: without page cache, and with all of it."""

    used: int
    with_cache: int


@dataclass(slots=True)
class KernelUsage:
    """A `UsageReader`. CPU times are read once for the node and its zones; which CPUs a zone has, once a process."""

    root: KernelRoot
    hierarchy: Hierarchy
    _ticks: NodeCpuTicks | None = None
    _zones: Mapping[int, frozenset[int]] | None = None

    def node_cpu(self) -> float:
        """See `UsageReader.node_cpu`."""
        self._ticks = read_cpu_ticks(self.root)
        return self._ticks.all.busy / _TICKS

    def node_memory(self) -> MemoryUse:
        """See `UsageReader.node_memory`."""
        found = read_memory_info(self.root)
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
        return {zone: read_node_memory(self.root, zone).used for zone in self._cpus_of_zones()}

    def group_cpu(self, group: str) -> float:
        """See `UsageReader.group_cpu`."""
        return read_cpu_usage(self.root, self.hierarchy, group) / NANOSECONDS

    def group_memory(self, group: str) -> MemoryUse:
        """See `UsageReader.group_memory`."""
        found = read_group_memory(self.root, self.hierarchy, group)
        return MemoryUse(found.without_page_cache, found.with_page_cache)

    def throttling(self, group: str) -> Throttling:
        """See `UsageReader.throttling`."""
        return read_throttling(self.root, self.hierarchy, group)

    def group_limit(self, group: str) -> int:
        """See `UsageReader.group_limit`."""
        cpus = len(group_cpus(self.root, self.hierarchy, group)) * 1000
        quota = read_number(self.root, self.hierarchy, "cpu.cfs_quota_us", group)
        if quota == UNLIMITED:
            return cpus
        try:
            period = read_number(self.root, self.hierarchy, "cpu.cfs_period_us", group)
        except NoSuchFile:
            period = _PERIOD
        return min(cpus, quota * 1000 // max(period, 1))

    def _cpus_of_zones(self) -> Mapping[int, frozenset[int]]:
        if self._zones is None:
            self._zones = read_node_cpus(self.root)
        return self._zones


def group_cpus(root: KernelRoot, hierarchy: Hierarchy, group: str) -> frozenset[int]:
    """The CPUs that a group runs on. Raises `KernelFileError`."""
    name = "cpuset.cpus" if hierarchy.version is CgroupVersion.V1 else "cpuset.effective_cpus"
    return read_cpus(root, hierarchy, name, group)
