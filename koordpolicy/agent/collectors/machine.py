"""The machine itself: its CPUs, NUMA zones and disks, looked at now and then."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.block import read_block_devices
from koordpolicy.linux.readings.topology import read_node_cpus, read_processors
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.topology import Processor

_HOLDS: Final = 60 * NANOSECONDS
"""How long what was read holds."""
CPUS, ZONES, DISKS = "cpu", "numa", "local_storage"
_READERS: Final[Mapping[str, Callable[[KernelRoot], Any]]] = {
    CPUS: read_processors,
    ZONES: read_node_cpus,
    DISKS: read_block_devices,
}


class MachineCollector:
    """Keeps the CPUs of one machine: the same tuple while they are the same. Times are nanoseconds of a monotonic clock."""

    def __init__(self, root: KernelRoot) -> None:
        self._root = root
        self._processors: tuple[Processor, ...] = ()
        self._until = 0
        self.looks: Counter[tuple[str, bool]] = Counter()
        """How often each part was looked at, and whether that succeeded."""
        self.failures: dict[str, str] = {}
        """What could not be read last, by part."""

    def processors(self, now: int) -> tuple[Processor, ...]:
        """The CPUs; none where they cannot be told."""
        if now < self._until:
            return self._processors
        found = {part: self._look(part, read) for part, read in _READERS.items()}
        cpus = found[CPUS]
        if cpus is None:
            return ()
        if cpus != self._processors:
            self._processors = cpus
        self._until = now + _HOLDS
        return self._processors

    def _look(self, part: str, read: Callable[[KernelRoot], Any]) -> Any:
        try:
            found = read(self._root)
        except KernelFileError as error:
            self.failures[part] = str(error)
            self.looks[part, False] += 1
            return None
        self.failures.pop(part, None)
        self.looks[part, True] += 1
        return found
