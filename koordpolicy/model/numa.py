"""NodeResourceTopology as values: the CPUs and NUMA zones of a node, and what pods are allocated in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from koordpolicy.model.protocol import BATCH_CPU, CPU, CPU_BASIC_INFO, RESOURCE_STATUS
from koordpolicy.model.reading import (
    NOTHING,
    Amounts,
    Json,
    amounts,
    embedded_object,
    flag,
    integer,
    mapping,
    objects,
    read_amounts,
    text,
    texts,
)

ZONE_TYPE = "Node"
"""The type of the zones that are NUMA nodes; other types (sockets, caches) are passed over."""


@dataclass(frozen=True, slots=True)
class Zone:
    """One NUMA zone; its number is its place among the zones."""

    name: str
    capacity: Amounts = field(default_factory=lambda: NOTHING)
    allocatable: Amounts = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True)
class CPUInfo:
    """What a node's CPUs are, and what of them is switched on."""

    model: str
    hyper_threading: bool = False
    turbo: bool = False


def read_cpu_info(obj: Json) -> CPUInfo | None:
    """What a NodeResourceTopology says of the CPUs; None where it says nothing. Raises ObjectError for a malformed annotation."""
    source = texts(mapping(obj, "metadata"), "annotations", "metadata").get(CPU_BASIC_INFO)
    if not source:
        return None
    declared = embedded_object(source, CPU_BASIC_INFO)
    return CPUInfo(
        text(declared, "cpuModel", CPU_BASIC_INFO),
        flag(declared, "hyperThreadEnabled", CPU_BASIC_INFO),
        flag(declared, "turboEnabled", CPU_BASIC_INFO),
    )


def is_zone(obj: Json) -> bool:
    """Whether an entry of the topology object is a NUMA zone."""
    return text(obj, "type") in ("", ZONE_TYPE)


def read_zones(obj: Json) -> tuple[Zone, ...]:
    """The zones of a NodeResourceTopology, in order. Raises ObjectError with the place of what is malformed."""
    zones = []
    for index, zone in enumerate(objects(obj, "zones")):
        at = f"zones[{index}]"
        if not is_zone(zone):
            continue
        listed = list(objects(zone, "resources", at))
        zones.append(
            Zone(
                text(zone, "name", at),
                capacity=_amounts(listed, "capacity", at),
                allocatable=_amounts(listed, "allocatable", at),
            )
        )
    return tuple(zones)


def zone_allocations(annotations: Mapping[str, str]) -> dict[int, Amounts]:
    """What a pod is allocated in each zone, by the zone's number; empty without an allocation.

    Raises ObjectError when the annotation is malformed.
    """
    source = annotations.get(RESOURCE_STATUS)
    if not source:
        return {}
    found: dict[int, Amounts] = {}
    for one in objects(embedded_object(source, RESOURCE_STATUS), "numaNodeResources", RESOURCE_STATUS):
        found[integer(one, "node", RESOURCE_STATUS) or 0] = amounts(one, "resources", RESOURCE_STATUS)
    return found


def cpu_zones(annotations: Mapping[str, str]) -> list[int]:
    """The zones in which a pod is allocated CPU, native or batch, in the scheduler's order. Raises ObjectError."""
    return [
        zone
        for zone, found in zone_allocations(annotations).items()
        if found.get(CPU, 0) > 0 or found.get(BATCH_CPU, 0) > 0
    ]


def _amounts(listed: list[Json], key: str, at: str) -> Amounts:
    return read_amounts(
        {text(one, "name", at): one[key] for one in listed if one.get(key) is not None}, f"{at}.{key}"
    )
