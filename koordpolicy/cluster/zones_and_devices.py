"""What other objects say of a node: its NUMA zones and its devices. It needs no table."""

from dataclasses import dataclass

from koordpolicy.model.devices import NodeDevices
from koordpolicy.model.numa import CPUInfo, Zone, read_cpu_info
from koordpolicy.model.reading import Json, ObjectError


@dataclass(frozen=True, slots=True)
class NodeZones:
    """The NUMA zones and CPUs of a node, and the object that tells of them."""

    zones: tuple[Zone, ...]
    raw: Json
    cpu: CPUInfo | None = None
    """None where nothing is said of them, or nothing that can be read."""


class ZonesAndDevices:
    """Both, by node."""

    __slots__ = ("devices", "zones")

    def __init__(self) -> None:
        self.zones: dict[str, NodeZones] = {}
        self.devices: dict[str, NodeDevices] = {}

    def set_zones(self, node: str, zones: tuple[Zone, ...], raw: Json) -> bool | None:
        """A node has these NUMA zones, as an object says; whether its CPUs are others, None where nobody compares."""
        try:
            cpu = read_cpu_info(raw)
        except ObjectError:
            cpu = None
        self.zones[node] = NodeZones(zones, raw, cpu)
        return None

    def remove_zones(self, node: str) -> None:
        """Nothing is known of a node's zones any more."""
        self.zones.pop(node, None)

    def set_devices(self, node: str, devices: NodeDevices) -> None:
        """A node has these devices, as an object says."""
        self.devices[node] = devices

    def remove_devices(self, node: str) -> None:
        """Nothing is known of a node's devices any more."""
        self.devices.pop(node, None)
