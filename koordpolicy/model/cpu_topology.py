"""What objects say of CPUs and NUMA zones for scheduling: what a node has, what a pod asks for, what it was given."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.model.cpu_layout import CPULayout
from koordpolicy.model.cpuset import cpuset_text, parse_cpuset
from koordpolicy.model.node import amplification_ratios, node_reservation
from koordpolicy.model.numa import read_zones, zone_allocations
from koordpolicy.model.pod import owned_cpus
from koordpolicy.model.protocol import (
    CPU,
    CPU_TOPOLOGY,
    KUBELET_CPU_MANAGER_POLICY,
    NUMA_TOPOLOGY_SPEC,
    POD_CPU_ALLOCS,
    RESOURCE_SPEC,
    RESOURCE_STATUS,
    SYSTEM_QOS_RESOURCE,
)
from koordpolicy.model.quantity import Notation, Quantity
from koordpolicy.model.reading import (
    Amounts,
    Json,
    ObjectError,
    embedded,
    embedded_object,
    flag,
    integer,
    mapping,
    objects,
    text,
    text_list,
    texts,
)
from koordpolicy.model.scheduling_hint import NUMA, hinted_plugins
from koordpolicy.model.topology import Processor

KUBELET_PODS: Final = "KubeletPods"
KUBELET: Final = "Kubelet"
NODE_RESERVED: Final = "NodeReservation"
SYSTEM: Final = "SystemQoS"
RESERVED_BY: Final = (KUBELET_PODS, KUBELET, NODE_RESERVED, SYSTEM)
"""Who keeps CPUs from being given to pods: the kubelet for pods of its own static policy, and for the system; the node's
reservation; what runs outside of Kubernetes, and alone on its CPUs.
"""

_CORES_OF_A_SOCKET: Final = 65_536
"""Numbers of cores are made unique in a machine with that, as Koordinator does."""

_ZONE: Final = "node-"
_NUMBER: Final = re.compile("[0-9]{1,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NodeCPUs:
    """What a NodeResourceTopology says of a node; `zones` are allocatable amounts by the number of the zone.

    `reserved` are the CPUs that are not given to pods, by who keeps them (`RESERVED_BY`).
    """

    layout: CPULayout
    zones: Mapping[int, Amounts]
    reserved: Mapping[str, frozenset[int]] = field(default_factory=dict)
    cpu_manager: str = ""
    full_pcpus_only: bool = False
    policies: tuple[str, ...] = ()
    ratios: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """What a pod says of how it wants CPUs and zones; empty where it says nothing."""

    required_bind: str = ""
    preferred_bind: str = ""
    exclusive: str = ""
    numa_policy: str = ""
    numa_exclusive: str = ""


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a pod has of a node: CPUs of its own, and amounts of zones."""

    cpus: frozenset[int] = frozenset()
    zones: Mapping[int, Amounts] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.cpus or self.zones)


NO_SPEC: Final = ResourceSpec()
NO_ALLOCATION: Final = Allocation()


def read_node_cpus(obj: Json) -> NodeCPUs:
    """The CPUs and zones of a NodeResourceTopology. Raises ObjectError with the place of what is malformed."""
    annotations = texts(mapping(obj, "metadata"), "annotations", "metadata")
    kubelet = _declared(annotations, KUBELET_CPU_MANAGER_POLICY)
    options = mapping(kubelet, "options", KUBELET_CPU_MANAGER_POLICY)
    policies = tuple(text_list(obj, "topologyPolicies"))
    zones: dict[int, Amounts] = {}
    for zone in read_zones(obj):
        number = zone.name.removeprefix(_ZONE)
        if zone.name.startswith(_ZONE) and _NUMBER.fullmatch(number):
            zones[int(number)] = zone.allocatable
    return NodeCPUs(
        CPULayout.of(_processors(annotations)),
        zones,
        {
            KUBELET_PODS: _of_kubelet_pods(annotations),
            KUBELET: _cpuset(kubelet, "reservedCPUs", KUBELET_CPU_MANAGER_POLICY),
            NODE_RESERVED: _of_node(annotations),
            SYSTEM: _of_system(annotations),
        },
        text(kubelet, "policy", KUBELET_CPU_MANAGER_POLICY),
        options.get("full-pcpus-only") in ("true", True),
        policies,
        amplification_ratios(annotations),
    )


def read_resource_spec(annotations: Mapping[str, str]) -> ResourceSpec:
    """What a pod asks for. Raises ObjectError for annotations that are malformed."""
    if RESOURCE_SPEC not in annotations and NUMA_TOPOLOGY_SPEC not in annotations:
        return NO_SPEC
    cpus, zones = _declared(annotations, RESOURCE_SPEC), _declared(annotations, NUMA_TOPOLOGY_SPEC)
    return ResourceSpec(
        text(cpus, "requiredCPUBindPolicy", RESOURCE_SPEC),
        text(cpus, "preferredCPUBindPolicy", RESOURCE_SPEC),
        text(cpus, "preferredCPUExclusivePolicy", RESOURCE_SPEC),
        text(zones, "numaTopologyPolicy", NUMA_TOPOLOGY_SPEC),
        text(zones, "singleNUMANodeExclusive", NUMA_TOPOLOGY_SPEC),
    )


def read_allocation(annotations: Mapping[str, str]) -> Allocation:
    """What a pod was given. Raises ObjectError for an annotation that is malformed."""
    if not annotations.get(RESOURCE_STATUS):
        return NO_ALLOCATION
    return Allocation(owned_cpus(annotations), zone_allocations(annotations))


def designated(annotations: Mapping[str, str]) -> Allocation | None:
    """The CPUs and zones that somebody else has chosen for a pod, by its scheduling hint; None for none. Raises ObjectError."""
    if NUMA not in hinted_plugins(annotations):
        return None
    return read_allocation(annotations) or None


def allocation_text(allocation: Allocation) -> str:
    """The same as the annotation has it."""
    cpuset = cpuset_text(allocation.cpus)
    if not allocation.zones:  # as of most; a list of CPUs has nothing to be escaped
        return f'{{"cpuset":"{cpuset}"}}' if cpuset else "{}"
    said: dict[str, Any] = {}
    if cpuset:
        said["cpuset"] = cpuset
    said["numaNodeResources"] = [
        {
            "node": zone,
            "resources": {name: _quantity(name, amount) for name, amount in sorted(amounts.items())},
        }
        for zone, amounts in sorted(allocation.zones.items())
    ]
    return json.dumps(said, separators=(",", ":"))


def _quantity(resource: str, amount: int) -> str:
    return str(Quantity.of_milli(amount) if resource == CPU else Quantity.of(amount, Notation.BINARY))


def _declared(annotations: Mapping[str, str], key: str) -> Json:
    source = annotations.get(key)
    return embedded_object(source, key) if source else {}


def _processors(annotations: Mapping[str, str]) -> list[Processor]:
    declared = _declared(annotations, CPU_TOPOLOGY)
    found: dict[int, Processor] = {}
    for one in objects(declared, "detail", CPU_TOPOLOGY):
        cpu, core, socket, node = (
            _number(one, key, CPU_TOPOLOGY) for key in ("id", "core", "socket", "node")
        )
        found[cpu] = Processor(cpu, socket * _CORES_OF_A_SOCKET + core, socket, node)
    return list(found.values())


def _number(one: Json, key: str, at: str) -> int:
    found = integer(one, key, at) or 0
    if not 0 <= found < _CORES_OF_A_SOCKET:
        raise ObjectError(f"{at}: `{key}` is {found}, which is no number of a CPU's place")
    return found


def _of_kubelet_pods(annotations: Mapping[str, str]) -> frozenset[int]:
    source = annotations.get(POD_CPU_ALLOCS)
    if not source:
        return frozenset()
    listed = embedded(source, POD_CPU_ALLOCS)
    found: frozenset[int] = frozenset()
    for one in objects({"pods": listed}, "pods", POD_CPU_ALLOCS) if listed is not None else ():
        if flag(one, "managedByKubelet", POD_CPU_ALLOCS) and text(one, "uid", POD_CPU_ALLOCS):
            try:
                found |= _cpuset(one, "cpuset", POD_CPU_ALLOCS)
            except ObjectError:
                continue  # one pod's entry that cannot be read says nothing of the others
    return found


def _of_node(annotations: Mapping[str, str]) -> frozenset[int]:
    reservation = node_reservation(annotations)
    return frozenset() if reservation is None else reservation.reserved_cpus


def _of_system(annotations: Mapping[str, str]) -> frozenset[int]:
    declared = _declared(annotations, SYSTEM_QOS_RESOURCE)
    if declared.get("cpusetExclusive") is False:
        return frozenset()
    return _cpuset(declared, "cpuset", SYSTEM_QOS_RESOURCE)


def _cpuset(parent: Json, key: str, at: str) -> frozenset[int]:
    try:
        return parse_cpuset(text(parent, key, at))
    except ValueError as error:
        raise ObjectError(f"{at}.{key}: {error}") from error
