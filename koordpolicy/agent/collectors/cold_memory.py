"""Memory that nobody has looked at for long, of the node, pods and host applications, as kernels with kidled tell it."""

from math import isnan, nan
from typing import Final

from koordpolicy.agent.collectors.usage import Scene
from koordpolicy.agent.measurements.levels import NODE, Measurements, application_key
from koordpolicy.agent.strategies.cold_memory import ColdMemoryPace
from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.readings.group_usage import read_cold_memory, read_group_memory
from koordpolicy.linux.root import KernelRoot

_INTERVALS: Final = 2
"""After so many without a reading what was read is nothing that holds now."""


class ColdMemoryCollector:
    """Reads at policy's pace, whenever a round finds it due. Times are nanoseconds of a monotonic clock."""

    def __init__(self, root: KernelRoot, hierarchy: Hierarchy) -> None:
        self._root = root
        self._hierarchy = hierarchy
        self._due = 0
        self._node = nan
        self._until = 0
        self.failures: dict[str, str] = {}
        """What could not be read when it was due last: one example of a reason."""

    def collect(self, found: Measurements, scene: Scene, pace: ColdMemoryPace | None, now: int) -> None:
        """Read what is due, of the node, its pods and host applications; nothing without a pace. What cannot be read is missing."""
        if pace is None:
            self._node, self._due, self.failures = nan, 0, {}
            return
        if now < self._due:
            return
        self._due, self.failures = now + pace.every, {}
        values: dict[str, tuple[float, float]] = {}
        cold = self._read(pace, "")
        if cold is None:
            found.cold.add(now, {})
            return  # a kernel that does not tell of itself tells of no group
        self._node, self._until = cold, now + _INTERVALS * pace.every
        values[NODE] = (cold, nan)
        groups = {uid: one.group for uid, one in scene.pods.items()}
        groups |= {application_key(name): group for name, group in scene.applications.items()}
        for key, group in groups.items():
            cold = self._read(pace, group)
            if cold is not None:
                values[key] = (cold, self._hot(group, cold))
        found.cold.add(now, values)

    def of_node(self, now: int) -> float:
        """Bytes of the node that are cold; NaN where that was not read lately."""
        return self._node if now <= self._until and not isnan(self._node) else nan

    def _read(self, pace: ColdMemoryPace, group: str) -> float | None:
        try:
            return float(read_cold_memory(self._root, self._hierarchy, group, pace.bucket))
        except NoSuchFile as error:
            if not group:
                self.failures["cold memory"] = str(error)
        except KernelFileError as error:
            self.failures.setdefault("cold memory", str(error))
        return None

    def _hot(self, group: str, cold: float) -> float:
        """What a group uses with the part of the page cache that is in use."""
        try:
            return float(read_group_memory(self._root, self._hierarchy, group).with_hot_page_cache(int(cold)))
        except KernelFileError:
            return nan
