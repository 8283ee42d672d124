"""What pods wait for: pressure by the kernel's own account, and the time that their tasks waited for a CPU."""

from collections.abc import Iterator, Mapping
from math import isnan, nan
from typing import Final, Protocol

from koordpolicy.agent.collectors.cpi import CPICounting
from koordpolicy.agent.collectors.signal_pace import SignalPace
from koordpolicy.agent.measurements.counters import RateMeter
from koordpolicy.agent.measurements.levels import (
    PRESSURES,
    SIGNALS,
    WAITING,
    ContainerKey,
    Measurements,
    pressure_measure,
)
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.readings.pressure import PressureStall

_PERCENT: Final = 100.0
_PRESSED: Final = tuple(dict.fromkeys(resource for resource, _kind in PRESSURES))
"""What the kernel is asked about, once for both kinds of pressure."""


class SignalReader(Protocol):
    """What the kernel says of groups. Every method raises `KernelFileError`; groups are paths below a hierarchy."""

    def pressure(self, group: str, resource: str) -> PressureStall:
        """For how much of the last while tasks waited."""
        ...

    def waited(self, group: str) -> Mapping[int, int]:
        """Nanoseconds that each task of a group itself has waited for a CPU, by its thread ID; of many tasks some."""
        ...


class SignalCollector:
    """Measures at policy's pace, whenever a round finds it due. Times are nanoseconds of a monotonic clock."""

    def __init__(self, reader: SignalReader, cpi: CPICounting) -> None:
        self._reader = reader
        self._cpi = cpi
        self._waited: RateMeter[tuple[str, int]] = RateMeter()
        self._due = 0
        self.stalls: dict[ContainerKey, dict[str, PressureStall]] = {}
        """What pods and their containers waited for when it was due last, by resource; a pod's own has no name."""
        self.failures: dict[str, str] = {}
        """What could not be read when it was due last, by part: one example of a reason."""

    @property
    def cycles(self) -> Mapping[ContainerKey, tuple[int, int]]:
        """Cycles and instructions of containers, as last counted."""
        return self._cpi.counts

    def collect(
        self, found: Measurements, pods: Mapping[str, NodePod], pace: SignalPace | None, now: int
    ) -> None:
        """Read what is due, of all pods by UID; nothing without a pace. What cannot be read is missing."""
        if pace is None:
            self.stop()
            return
        self._cpi.turn(found, pods, pace, now)
        if now < self._due:
            return
        self._due = now + pace.pressure
        self.failures, self.stalls = dict(self._cpi.failures), {}
        values: dict[str, list[float]] = {}
        known: list[tuple[str, int]] = []
        for uid, one in pods.items():
            row = dict.fromkeys(SIGNALS, nan)
            if pace.presses:
                row |= self._pressures(uid, one)
            if pace.waits:
                row[WAITING] = self._waiting(uid, one, now, pace.pressure, known)
            if not all(map(isnan, row.values())):
                values[uid] = [row[name] for name in SIGNALS]
        self._waited.keep(known)
        found.signals.add(now, values)

    def stop(self) -> None:
        """Count no longer."""
        self._cpi.stop()
        self._waited.keep(())
        self.failures, self.stalls, self._due = {}, {}, 0

    def _pressures(self, uid: str, pod: NodePod) -> dict[str, float]:
        """Those of a pod, in percent of the last ten seconds; those of its containers are kept beside."""
        told = list(_PRESSED)
        for name, group in (("", pod.group), *pod.containers.items()):
            found = {}
            for resource in [*told]:
                try:
                    found[resource] = self._reader.pressure(group, resource)
                except KernelFileError as error:
                    self.failures.setdefault("pressure", str(error))
                    if isinstance(error, NoSuchFile) and not name:
                        told.remove(
                            resource
                        )  # what the kernel does not tell of a pod it tells of none of its containers
            if found:
                self.stalls[ContainerKey(uid, name)] = found
        row = {}
        for resource, stall in self.stalls.get(ContainerKey(uid, ""), {}).items():
            row[pressure_measure(resource, "some")] = stall.some.average_10
            if stall.full is not None:
                row[pressure_measure(resource, "full")] = stall.full.average_10
        return row

    def _waiting(
        self, uid: str, pod: NodePod, now: int, interval: int, known: list[tuple[str, int]]
    ) -> float:
        """Percent; tasks that have just begun count from the next time on. NaN where none was counted before."""
        rates = []
        for task, waited in self._tasks(pod):
            known.append((uid, task))
            rate = self._waited.rate((uid, task), now, waited, interval)
            if rate is not None:
                rates.append(rate)
        return sum(rates) * _PERCENT if rates else nan

    def _tasks(self, pod: NodePod) -> Iterator[tuple[int, int]]:
        for group in pod.containers.values():
            try:
                yield from self._reader.waited(group).items()
            except NoSuchFile:
                continue  # it has ended since its pod was told of
            except KernelFileError as error:
                self.failures.setdefault("waiting", str(error))
