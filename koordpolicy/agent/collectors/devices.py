"""What devices the node has, how they are, and how much of them is in use: one look at all sources.

A look may wait for drivers, so it is taken in a thread of its own. Of GPUs the first source that has any tells: files of
vendors' daemons, NVIDIA's library, then the table of drivers that tell of themselves in /sys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from koordpolicy.agent.collectors.device_infos import read_device_infos
from koordpolicy.agent.collectors.device_pace import DevicePace
from koordpolicy.linux.devices.found import GPU, DeviceState, DeviceUse, FoundDevice, FoundGPUs
from koordpolicy.linux.devices.nvml import LIBRARY, GPUFigures, NvidiaLibrary
from koordpolicy.linux.devices.pci import PciBuses
from koordpolicy.linux.devices.rdma import read_rdma_cards
from koordpolicy.linux.devices.vendors import label_of, read_vendor_devices
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.protocol import GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO
from koordpolicy.model.reading import ObjectError

DEVICE_INFOS: Final = Path("/var/run/koordlet/xpu-device-infos")
"""Where vendors' daemons put their files for koordlet."""
NVIDIA: Final = "nvidia"
_OWN_NAME: Final = "NVIDIA "
"""What newer drivers put before the names of models."""
_WHOLE: Final = "100"
_MOST_GPUS: Final = 1024


@dataclass(frozen=True, slots=True)
class DeviceSources:
    """Where devices are told of, beside /sys: a directory of files, and the name or path of NVIDIA's library."""

    infos: Path = DEVICE_INFOS
    library: str = LIBRARY


DEVICE_SOURCES: Final = DeviceSources()


@dataclass(frozen=True, slots=True)
class DeviceFindings:
    """One look. None is what could not be told: that stays as it was reported.

    `problems` says why, by source; `absent` what is not there at all, which is no trouble.
    """

    gpus: FoundGPUs | None = None
    cards: tuple[FoundDevice, ...] | None = None
    problems: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()


class DeviceCollector:
    """Looks at the devices of one node. One look at a time; what is begun of NVIDIA's library stays begun.

    A GPU that had an error is not well until the agent begins anew: nothing tells that it recovered.
    """

    def __init__(self, root: KernelRoot, sources: DeviceSources) -> None:
        self._root = root
        self._sources = sources
        self._nvidia: NvidiaLibrary | None = None
        self._driver = ""
        self._buses: tuple[Mapping[int, int], PciBuses] | None = None
        self._known: dict[str, GPUFigures] = {}
        self._ill: dict[str, DeviceState] = {}

    def look(self, pace: DevicePace, sockets: Mapping[int, int]) -> DeviceFindings:
        """What there is of the types that are wanted; `sockets` are those of NUMA nodes. Nothing is raised."""
        if self._buses is None or self._buses[0] != sockets:
            self._buses = (dict(sockets), PciBuses(self._root, sockets))
        buses, problems, absent = self._buses[1], dict[str, str](), list[str]()
        gpus = self._gpus(pace, buses, problems, absent) if pace.gpus else None
        cards = None
        if pace.rdma:
            try:
                cards = read_rdma_cards(self._root, buses)
            except KernelFileError as error:
                problems["rdma"] = str(error)
        return DeviceFindings(gpus, cards, problems, tuple(absent))

    def close(self) -> None:
        """Be done with NVIDIA's library."""
        if self._nvidia is not None:
            self._nvidia.close()
            self._nvidia = None

    def _gpus(
        self, pace: DevicePace, buses: PciBuses, problems: dict[str, str], absent: list[str]
    ) -> FoundGPUs | None:
        found: FoundGPUs | None = None
        try:
            found = read_device_infos(self._sources.infos)
        except ObjectError as error:
            problems["device infos"] = str(error)
            return None
        try:
            found = found or self._of_nvidia(pace, buses)
        except NoSuchFile as error:
            absent.append(error.problem)
        except KernelFileError as error:
            problems["nvml"] = str(error)
            return None
        try:
            found = found or read_vendor_devices(self._root, buses)
        except KernelFileError as error:
            problems["vendors"] = str(error)
            return None
        # Without NVIDIA's library nobody knows whether there are GPUs of theirs.
        return found or (None if absent else FoundGPUs())

    def _of_nvidia(self, pace: DevicePace, buses: PciBuses) -> FoundGPUs | None:
        """The GPUs by NVIDIA's library. Raises `NoSuchFile` where there is none, `KernelFileError` where it fails."""
        if self._nvidia is None:
            self._nvidia = NvidiaLibrary(self._sources.library)
            self._driver = self._nvidia.driver()
        count = min(self._nvidia.count(), _MOST_GPUS)
        self._listen(self._nvidia, pace)
        seen: set[str] = set()
        lost = "the driver lists it no more"
        for index in range(count):
            try:
                figures = self._nvidia.figures(index)
            except KernelFileError as error:
                if not self._known:
                    raise
                lost = error.problem
                continue
            self._known[figures.uuid] = figures
            seen.add(figures.uuid)
        for uuid in self._known.keys() - seen:
            self._ill.setdefault(uuid, DeviceState(healthy=False, code="DeviceLost", message=lost))
        if not self._known:
            return None
        models = {one.model for one in self._known.values()}
        present = {uuid: self._known[uuid] for uuid in seen}
        return FoundGPUs(
            tuple(
                self._device(one, buses) for one in sorted(self._known.values(), key=lambda one: one.minor)
            ),
            NVIDIA,
            label_of(models.pop().removeprefix(_OWN_NAME)) if len(models) == 1 else "",
            self._driver,
            use={
                uuid: DeviceUse(float(one.busy), float(one.used))
                for uuid, one in present.items()
                if one.busy is not None
            },
            use_of=_by_process(present),
        )

    def _listen(self, library: NvidiaLibrary, pace: DevicePace) -> None:
        for uuid, number in library.errors():
            if number in pace.harmless:
                continue
            state = DeviceState(
                healthy=False, code=f"Xid{number}", message=f"the GPU had an error, Xid {number}"
            )
            for one in [uuid] if uuid else list(self._known):
                self._ill.setdefault(one, state)

    def _device(self, figures: GPUFigures, buses: PciBuses) -> FoundDevice:
        return FoundDevice(
            GPU,
            figures.uuid,
            figures.minor,
            {GPU_CORE: _WHOLE, GPU_MEMORY: str(figures.memory), GPU_MEMORY_RATIO: _WHOLE},
            buses.place(figures.address),
            self._ill.get(figures.uuid),
        )


def _by_process(figures: Mapping[str, GPUFigures]) -> dict[int, dict[str, DeviceUse]]:
    found: dict[int, dict[str, DeviceUse]] = {}
    for uuid, one in figures.items():
        for pid, (cores, memory) in one.processes.items():
            found.setdefault(pid, {})[uuid] = DeviceUse(float(cores), float(memory))
    return found
