"""Pressure stall information: how long tasks waited for CPU, memory or I/O."""

from dataclasses import dataclass
from enum import StrEnum

from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.errors import Malformed
from koordpolicy.linux.readings.fields import lines
from koordpolicy.linux.readings.value import read_located
from koordpolicy.linux.root import PROC, KernelRoot


class PressureResource(StrEnum):
    """What is waited for."""

    CPU = "cpu"
    MEMORY = "memory"
    IO = "io"


@dataclass(frozen=True, slots=True)
class StallTime:
    """Percent of the time of the last 10, 60 and 300 seconds, and all of it in microseconds."""

    average_10: float
    average_60: float
    average_300: float
    total: int


@dataclass(frozen=True, slots=True)
class PressureStall:
    """Time in which `some` task waited, and in which all that could run did (`full`); None where the kernel does not tell."""

    some: StallTime
    full: StallTime | None


def read_node_pressure(root: KernelRoot, resource: PressureResource) -> PressureStall:
    """The node's. Raises `NoSuchFile` on kernels without it."""
    path = f"{PROC}/pressure/{resource}"
    return _pressure(path, root.read(path))


def read_group_pressure(
    root: KernelRoot, hierarchy: Hierarchy, group: str, resource: PressureResource
) -> PressureStall:
    """A group's, from whichever version of cgroups tells it. Raises `NoSuchFile` where none does."""
    place, content = read_located(root, hierarchy, f"{resource}.pressure", group)
    return _pressure(place.path, content)


def _pressure(path: str, content: str) -> PressureStall:
    found = {}
    try:
        for name, *rest in lines(content):
            held = dict(word.split("=", 1) for word in rest)
            ten, sixty, long = (float(held[key]) for key in ("avg10", "avg60", "avg300"))
            found[name] = StallTime(ten, sixty, long, int(held["total"]))
        return PressureStall(found["some"], found.get("full"))
    except (KeyError, ValueError) as error:
        raise Malformed(path, f"not as expected: {error}") from error
