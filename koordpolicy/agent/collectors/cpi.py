"""Cycles per instruction of pods: counters of the CPU are opened for a window, for some pods at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from koordpolicy.agent.collectors.signal_pace import SignalPace
from koordpolicy.agent.measurements.levels import Measurements
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.readings.perf import PerfCount, PerfEvent

EVENTS: Final = (PerfEvent.CYCLES, PerfEvent.INSTRUCTIONS)
_MOST_COUNTERS: Final = 1024
"""Open at once. Each takes a file of the process, and there are two for each pod and CPU: pods take turns."""


class RunningCount(Protocol):
    """Counters of one group that run. Implemented by `GroupCounters`."""

    def read(self) -> Mapping[PerfEvent, PerfCount]:
        """What was counted so far. Raises `KernelFileError`."""
        ...

    def close(self) -> None:
        """Count no longer."""
        ...


class CPICounting:
    """Counts for a window whenever it is due. Times are nanoseconds of a monotonic clock.

    `begin` opens the counters of a group, told by its path below a hierarchy; it raises `KernelFileError`. `cpus` is how many
    CPUs the node has: so many counters an event takes.
    """

    def __init__(self, begin: Callable[[str], RunningCount], cpus: Callable[[], int]) -> None:
        self._begin = begin
        self._cpus = cpus
        self._running: dict[str, RunningCount] = {}
        self._waiting: list[str] = []
        self._ends = 0
        self._due = 0
        self.failures: dict[str, str] = {}

    def turn(self, found: Measurements, pods: Mapping[str, NodePod], pace: SignalPace, now: int) -> None:
        """End what has run for long enough, and begin what is due."""
        if self._running and now < self._ends:
            return
        if self._running:
            found.cpi.add(now, self._counted())
        if not self._waiting and now >= self._due and pace.cpi_window > 0:
            self._due, self._waiting, self.failures = now + pace.cpi, list(pods), {}
        if self._waiting:
            most = max(_MOST_COUNTERS // (len(EVENTS) * max(self._cpus(), 1)), 1)
            chosen, self._waiting = self._waiting[:most], self._waiting[most:]
            self._open([(uid, pods[uid].group) for uid in chosen if uid in pods])
            self._ends = now + pace.cpi_window

    def stop(self) -> None:
        """Count no longer."""
        for one in self._running.values():
            one.close()
        self._running, self._waiting, self._due, self.failures = {}, [], 0, {}

    def _open(self, groups: Sequence[tuple[str, str]]) -> None:
        for uid, group in groups:
            try:
                self._running[uid] = self._begin(group)
            except NoSuchFile:
                continue  # it has ended, or begins only now
            except KernelFileError as error:
                # What the kernel or the machine refuses for one pod it refuses for all.
                self.failures = {"cpi": str(error)}
                self._waiting = []
                return

    def _counted(self) -> dict[str, tuple[float]]:
        found = {}
        for uid, counting in self._running.items():
            try:
                counts = counting.read()
            except KernelFileError as error:
                self.failures.setdefault("cpi", str(error))
                continue
            finally:
                counting.close()
            cycles, instructions = (counts[event].value for event in EVENTS)
            if cycles > 0 and instructions > 0:
                found[uid] = (cycles / instructions,)
        self._running = {}
        return found
