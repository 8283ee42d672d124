"""All that is measured on a node, by level: the node, its zones, pods, containers, host applications."""

from typing import Final, NamedTuple

from koordpolicy.agent.collection import Collection
from koordpolicy.agent.measurements.table import MeasurementTable, Reach

NODE: Final = "node"
"""The one subject of tables about the node as a whole."""

CPU, MEMORY, WITH_CACHE, WITH_HOT_CACHE = "cpu", "memory", "memoryWithPageCache", "memoryWithHotPageCache"
THROTTLED: Final = "throttled"
"""Cores; bytes without page cache; with all of it; with the part that is in use; share of periods that were throttled."""

USAGE, REQUEST, LIMIT = "usage", "request", "limit"
"""Of best-effort work together, in millicores."""

CPI, WAITING = "cpi", "schedulingDelay"
"""Cycles for each instruction; percent of the time that passed in which the tasks of a pod waited for a CPU."""

COLD: Final = "cold"
"""Bytes that nobody has looked at for long."""

CORES: Final = "cores"
"""Percent of a device's cores in use."""

PRESSURES: Final = tuple(
    (resource, kind) for resource in ("cpu", "memory", "io") for kind in ("some", "full")
)
"""What tasks wait for, and whether some of them do or all; measured in percent."""


def pressure_measure(resource: str, kind: str) -> str:
    """The name of a pressure in tables, and as a fact."""
    return f"pressure.{resource}.{kind}"


SIGNALS: Final = (*(pressure_measure(*one) for one in PRESSURES), WAITING)

_MOST_ZONES: Final = 1024
_MOST_DEVICES: Final = 1024
_MOST_APPLICATIONS: Final = 1000
_CONTAINERS: Final = 10
"""Containers of a pod that are measured, on average."""
_LEVELS: Final = (
    "node",
    "system",
    "best_effort",
    "zones",
    "pods",
    "containers",
    "applications",
    "signals",
    "cpi",
    "cold",
    "devices",
    "pod_devices",
)


class ContainerKey(NamedTuple):
    """The UID of a pod, and the name of one of its containers."""

    uid: str
    name: str


class PodDevice(NamedTuple):
    """The UID of a pod, and the ID of a device that it uses."""

    uid: str
    device: str


def application_key(name: str) -> str:
    """How a host application is told in a table that is of other things as well."""
    return f"application {name}"


class Measurements:
    """A table for each level. Times are nanoseconds of a monotonic clock; pods are told by UID."""

    def __init__(self, collection: Collection) -> None:
        node, pod, most = collection.node_reach, collection.pod_reach, collection.most_pods
        self.node = MeasurementTable[str]((CPU, MEMORY, WITH_CACHE, WITH_HOT_CACHE), node, 1)
        self.system = MeasurementTable[str]((CPU, MEMORY), node, 1)
        self.best_effort = MeasurementTable[str]((USAGE, REQUEST, LIMIT), pod, 1)
        self.zones = MeasurementTable[int]((CPU, MEMORY), pod, _MOST_ZONES)
        self.pods = MeasurementTable[str]((CPU, MEMORY, WITH_CACHE), pod, most)
        self.containers = MeasurementTable[ContainerKey]((CPU, THROTTLED), pod, _CONTAINERS * most)
        self.applications = MeasurementTable[str]((CPU, MEMORY, WITH_CACHE), pod, _MOST_APPLICATIONS)
        self.signals = MeasurementTable[str](SIGNALS, pod, most)
        self.cpi = MeasurementTable[str]((CPI,), pod, most)
        self.cold = MeasurementTable[str]((COLD, WITH_HOT_CACHE), pod, most + _MOST_APPLICATIONS + 1)
        """Of the node as a whole, of pods by UID, and of host applications by `application_key`."""
        self.devices = MeasurementTable[str]((CORES, MEMORY), pod, _MOST_DEVICES)
        self.pod_devices = MeasurementTable[PodDevice]((CORES, MEMORY), pod, most + _MOST_DEVICES)

    @property
    def nbytes(self) -> int:
        """What all tables take, in bytes."""
        return sum(getattr(self, level).nbytes for level in _LEVELS)

    @property
    def refused(self) -> int:
        """Measurements of subjects for which there was no row."""
        return sum(getattr(self, level).refused for level in _LEVELS)

    def reach(self, collection: Collection) -> None:
        """Go on with windows that policy has changed, as far back as there is something."""
        for level in _LEVELS:
            table = getattr(self, level)
            wanted: Reach = collection.node_reach if level in ("node", "system") else collection.pod_reach
            setattr(self, level, table.reaching(wanted))
