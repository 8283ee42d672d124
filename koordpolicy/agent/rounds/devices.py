"""Rounds of devices: a look at all of them in a thread, what of it is measured, and what is reported."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from koordpolicy.agent.collectors.device_pace import DevicePace, decide_device_pace
from koordpolicy.agent.collectors.devices import DeviceCollector, DeviceFindings
from koordpolicy.agent.measurements.levels import CORES, MEMORY, Measurements, PodDevice
from koordpolicy.agent.measurements.table import MeasurementTable, Subject
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.reports.devices import DevicesInUse, used_devices
from koordpolicy.agent.reports.node_devices import DeviceReporter
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.port import Object
from koordpolicy.linux.devices.found import DeviceUse, FoundDevice
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.members import read_processes
from koordpolicy.model.facts import Record
from koordpolicy.model.topology import Processor

_PATIENCE: Final = 20.0
"""Seconds that a round waits for drivers; a look that takes longer is waited for in the next one."""
_AVERAGE: Final = "avg"


class DeviceRounds:
    """The devices of one node, as last found. Policy's pace is decided beside; without one nothing is looked at."""

    def __init__(self, collector: DeviceCollector, reporter: DeviceReporter) -> None:
        self._collector = collector
        self._reporter = reporter
        self._look: asyncio.Future[DeviceFindings] | None = None
        self.pace: DevicePace | None = None
        self.found = DeviceFindings()
        self.trouble = ""
        """Why devices were not looked at; empty when they were."""

    def decide(self, graph: RuleGraph, record: Record, now: int) -> None:
        """Take what policy says of the node; `now` in nanoseconds since 1970. Raises CelError."""
        self.pace = decide_device_pace(graph, record, now)
        if self.pace is None:
            self.found, self.trouble = DeviceFindings(), ""

    def interval(self, otherwise: int) -> int:
        """Nanoseconds between looks; `otherwise` while policy wants none."""
        return otherwise if self.pace is None else self.pace.every

    @property
    def listed(self) -> tuple[FoundDevice, ...]:
        """The devices that were found last."""
        return (*(self.found.gpus.devices if self.found.gpus else ()), *(self.found.cards or ()))

    @property
    def words(self) -> str:
        """For `/statusz`: what is wrong, or what there is."""
        if self.pace is None:
            return "not wanted"
        return self.trouble or self._reporter.trouble or f"good, {len(self.listed)} of them"

    async def look(self, processors: Sequence[Processor]) -> bool:
        """Look at all devices that policy wants; whether drivers answered in time."""
        if self.pace is None:
            return False
        if self._look is None:
            sockets = {one.node: one.socket for one in reversed(processors)}
            self._look = asyncio.ensure_future(asyncio.to_thread(self._collector.look, self.pace, sockets))
        done, _ = await asyncio.wait({self._look}, timeout=_PATIENCE)
        if not done:
            self.trouble = "the drivers of devices do not answer"
            return False
        ended, self._look = self._look, None
        self.found, self.trouble = ended.result(), ""
        return True

    def measure(self, found: Measurements, kernel: NodeKernel, pods: Mapping[str, NodePod], now: int) -> None:
        """Keep what the last look found of use, of the node and of its pods by UID; `now` of the measurements' clock."""
        gpus = self.found.gpus
        if gpus is None:
            return
        found.devices.add(now, {one: (use.cores, use.memory) for one, use in gpus.use.items()})
        found.pod_devices.add(now, _by_pod(gpus.use_of, kernel, pods))

    async def report(self, node: Object, standing: Object | None) -> bool:
        """Write the Device object where it says something else; whether it was written."""
        return await self._reporter.report(node, self.found, standing)

    def in_use(self, found: Measurements, pods: Mapping[str, NodePod], now: int, window: int) -> DevicesInUse:
        """What a report says: averages over a window, in nanoseconds."""
        gpus = self.found.gpus
        if self.pace is None or gpus is None or not gpus.devices:
            return DevicesInUse()
        by_pod: dict[str, dict[str, DeviceUse]] = {}
        for key, use in _averages(found.pod_devices, now, window).items():
            by_pod.setdefault(key.uid, {})[key.device] = use
        listed: Sequence[FoundDevice] = gpus.devices
        return DevicesInUse(
            tuple(used_devices(listed, _averages(found.devices, now, window))),
            {
                pods[uid].pod.key: tuple(used_devices(listed, use))
                for uid, use in by_pod.items()
                if uid in pods
            },
        )

    def stop(self) -> None:
        """Be done with drivers; one that is still waited for is left alone."""
        if self._look is None:
            self._collector.close()


def _averages(table: MeasurementTable[Subject], now: int, window: int) -> dict[Subject, DeviceUse]:
    cores = table.excerpt(CORES, now, window).aggregate(_AVERAGE)
    memory = table.excerpt(MEMORY, now, window).aggregate(_AVERAGE)
    return {one: DeviceUse(cores[one], memory[one]) for one in cores.keys() & memory.keys()}


def _by_pod(
    use_of: Mapping[int, Mapping[str, DeviceUse]], kernel: NodeKernel, pods: Mapping[str, NodePod]
) -> dict[PodDevice, tuple[float, float]]:
    """What each pod uses of each device: that of all processes of its containers."""
    found: dict[PodDevice, tuple[float, float]] = {}
    for uid, one in pods.items() if use_of else ():
        for group in one.containers.values():
            try:
                processes = read_processes(kernel.root, kernel.hierarchy, group)
            except KernelFileError:
                continue  # it has ended since its pod was told of
            for pid in processes:
                for device, use in use_of.get(pid, {}).items():
                    key = PodDevice(uid, device)
                    cores, memory = found.get(key, (0.0, 0.0))
                    found[key] = (cores + use.cores, memory + use.memory)
    return found
