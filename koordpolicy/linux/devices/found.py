"""A device as it was found, whoever tells of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

GPU: Final = "gpu"
"""The type of GPUs and of all accelerators that are shared like them."""
RDMA_CARD: Final = "rdma"

UNKNOWN: Final = -1
"""A socket or NUMA node that nobody tells of."""


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """Where a device sits: socket, NUMA node, PCI root complex (`pci0000:3a`), and address on the bus (`0000:3b:00.0`)."""

    socket: int = UNKNOWN
    node: int = UNKNOWN
    root: str = ""
    bus: str = ""


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Whether a device works; else why not: `code` in one word for programs, `message` for people."""

    healthy: bool = True
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class FoundDevice:
    """One device. `minor` is its number among those of its type, `resources` are amounts as quantities, by name.

    `state` is None where nobody tells of it: then it is taken to work. `functions` are the addresses of its virtual
    functions.
    """

    type: str
    id: str
    minor: int
    resources: Mapping[str, str]
    place: DevicePlace | None = None
    state: DeviceState | None = None
    functions: tuple[str, ...] = ()
    module: int | None = None

    @property
    def healthy(self) -> bool:
        """Whether it is offered."""
        return self.state is None or self.state.healthy


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """Percent of a device's cores in use, and bytes of its memory."""

    cores: float
    memory: float


_NOTHING: Final[Mapping[str, DeviceUse]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FoundGPUs:
    """What one source tells of the accelerators of a node.

    `partitions` are sets of minors that are linked with each other, with the sort of link; `honoured` whether pods may get no
    other sets. `use` is by ID of a device, `use_of` by process.
    """

    devices: tuple[FoundDevice, ...] = ()
    vendor: str = ""
    model: str = ""
    driver: str = ""
    partitions: tuple[tuple[tuple[int, ...], str], ...] = ()
    honoured: bool = False
    use: Mapping[str, DeviceUse] = field(default_factory=lambda: _NOTHING)
    use_of: Mapping[int, Mapping[str, DeviceUse]] = field(default_factory=lambda: MappingProxyType({}))
