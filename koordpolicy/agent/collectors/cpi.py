"""Cycles per instruction of pods: counters of the CPU are opened for a window, for some pods at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from koordpolicy.agent.collectors.signal_pace import SignalPace
from koordpolicy.agent.measurements.levels import ContainerKey, Measurements
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.readings.perf import PerfCount, PerfEvent

EVENTS: Final = (PerfEvent.CYCLES, PerfEvent.INSTRUCTIONS)
_MOST_COUNTERS: Final = 1024
"""Open at once. Each takes a file of the process, and there are two for each container and CPU: pods take turns."""


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
        self._running: dict[ContainerKey, RunningCount] = {}
        self._waiting: list[str] = []
        self._ends = 0
        self._due = 0
        self.counts: dict[ContainerKey, tuple[int, int]] = {}
        """Cycles and instructions of each container in its last window; of those that have ended none."""
        self.failures: dict[str, str] = {}

    def turn(self, found: Measurements, pods: Mapping[str, NodePod], pace: SignalPace, now: int) -> None:
        """End what has run for long enough, and begin what is due."""
        if self._running and now < self._ends:
            return
        if self._running:
            self.counts = {key: one for key, one in self.counts.items() if key.uid in pods}
            counted = self._counted()
            self.counts |= counted
            found.cpi.add(now, _of_pods(counted))
        if not self._waiting and now >= self._due and pace.cpi_window > 0:
            self._due, self._waiting, self.failures = now + pace.cpi, list(pods), {}
        if self._waiting:
            self._open(self._chosen(pods), pods)
            self._ends = now + pace.cpi_window

    def stop(self) -> None:
        """Count no longer."""
        for one in self._running.values():
            one.close()
        self._running, self._waiting, self._due, self.failures, self.counts = {}, [], 0, {}, {}

    def _chosen(self, pods: Mapping[str, NodePod]) -> list[str]:
        """The next pods, so many that their counters are not too many, and one at least."""
        most = _MOST_COUNTERS // (len(EVENTS) * max(self._cpus(), 1))
        chosen: list[str] = []
        containers = 0
        while self._waiting:
            one = pods.get(self._waiting[0])
            containers += 0 if one is None else len(one.containers)
            if chosen and containers > most:
                break
            chosen.append(self._waiting.pop(0))
        return chosen

    def _open(self, chosen: Sequence[str], pods: Mapping[str, NodePod]) -> None:
        for uid in chosen:
            for name, group in pods[uid].containers.items() if uid in pods else ():
                try:
                    self._running[ContainerKey(uid, name)] = self._begin(group)
                except NoSuchFile:
                    continue  # it has ended, or begins only now
                except KernelFileError as error:
                    # What the kernel or the machine refuses for one container it refuses for all.
                    self.failures = {"cpi": str(error)}
                    self._waiting = []
                    return

    def _counted(self) -> dict[ContainerKey, tuple[int, int]]:
        found = {}
        for key, counting in self._running.items():
            try:
                counts = counting.read()
            except KernelFileError as error:
                self.failures.setdefault("cpi", str(error))
                continue
            finally:
                counting.close()
            cycles, instructions = (counts[event].value for event in EVENTS)
            found[key] = (cycles, instructions)
        self._running = {}
        return found


def _of_pods(counts: Mapping[ContainerKey, tuple[int, int]]) -> dict[str, tuple[float]]:
    """Cycles for each instruction of all containers of a pod together."""
    sums: dict[str, tuple[int, int]] = {}
    for key, (cycles, instructions) in counts.items():
        before = sums.get(key.uid, (0, 0))
        sums[key.uid] = (before[0] + cycles, before[1] + instructions)
    return {uid: (cycles / done,) for uid, (cycles, done) in sums.items() if cycles > 0 and done > 0}
