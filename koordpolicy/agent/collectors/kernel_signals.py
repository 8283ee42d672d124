"""What the collector of signals reads, of a kernel's files and counters."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.agent.collectors.cpi import EVENTS, RunningCount
from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.host_root import HostRoot
from koordpolicy.linux.readings.members import read_tasks
from koordpolicy.linux.readings.perf import GroupCounters
from koordpolicy.linux.readings.pressure import PressureResource, PressureStall, read_group_pressure
from koordpolicy.linux.readings.processes import read_cpu_ticks, read_schedule_stat
from koordpolicy.linux.root import KernelRoot


@dataclass(frozen=True, slots=True)
class KernelSignals:
    """A `SignalReader`, and what opens counters of groups."""

    root: KernelRoot
    hierarchy: Hierarchy

    def pressure(self, group: str, resource: str) -> PressureStall:
        """See `SignalReader.pressure`."""
        return read_group_pressure(self.root, self.hierarchy, group, PressureResource(resource))

    def waited(self, group: str) -> Mapping[int, int]:
        """See `SignalReader.waited`."""
        found = {}
        for task in read_tasks(self.root, self.hierarchy, group):
            try:
                found[task] = read_schedule_stat(self.root, task).waited
            except KernelFileError:
                continue  # it has ended meanwhile
        return found

    def count(self, group: str) -> RunningCount:
        """Count cycles and instructions of a group on all CPUs. Raises `KernelFileError`."""
        if not isinstance(self.root, HostRoot):
            raise KernelFileError(group, "there are no counters in a model of a kernel")
        directory = self.hierarchy.directory("perf_event", group)
        return GroupCounters(self.root, directory, EVENTS, sorted(read_cpu_ticks(self.root).by_cpu))

    def cpus(self) -> int:
        """How many CPUs there are; 1 where that cannot be told."""
        try:
            return len(read_cpu_ticks(self.root).by_cpu)
        except KernelFileError:
            return 1
