"""Fact records of nodes, their zones and host applications, and of the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.amounts import all_within, within
from koordpolicy.model.devices import Device, NodeDevices
from koordpolicy.model.facts.record import (
    BASIC,
    COUNTED,
    REQUESTABLE,
    Record,
    Times,
    paths,
    put_all,
    put_present,
)
from koordpolicy.model.metric import HostApplicationMetric, NodeMetric
from koordpolicy.model.node import (
    Node,
    amplification_ratios,
    annotation_reserved,
    network_bandwidth,
    normalization_ratio,
    physical_allocatable,
)
from koordpolicy.model.numa import CPUInfo
from koordpolicy.model.pod import larger
from koordpolicy.model.protocol import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    NODE_RESERVATION,
    ORIGIN_EXTENDED_ALLOCATABLE,
    PODS,
    RAW_ALLOCATABLE,
)
from koordpolicy.model.reading import NOTHING, Amounts, ObjectError

AGGREGATIONS: Final = ("avg", "p50", "p90", "p95", "p99")

_CAPACITY: Final = paths("capacity", COUNTED)
_ALLOCATABLE: Final = paths("allocatable", COUNTED)
_PHYSICAL: Final = paths("physical", COUNTED)
_REQUESTED: Final = paths("requested", COUNTED)
_NONZERO: Final = paths("nonzeroRequested", COUNTED)
_FREE: Final = paths("free", COUNTED)
_RESERVED: Final = paths("reserved", BASIC)
_RESERVED_KUBELET: Final = paths("reserved.kubelet", BASIC)
_RESERVED_ANNOTATION: Final = paths("reserved.annotation", BASIC)
_USAGE_TOTAL: Final = paths("usage.total", BASIC)
_USAGE_SYSTEM: Final = paths("usage.system", BASIC)
_USAGE_AGGREGATED: Final = {name: paths(f"usage.{name}", BASIC) for name in AGGREGATIONS}
_RECLAIMABLE: Final = paths("prediction.prodReclaimable", BASIC)
_USAGE: Final = paths("usage", BASIC)
_BASIC: Final = tuple(BASIC.items())
_ZONE_CAPACITY: Final = paths("capacity", BASIC)
_IN_ZONES: Final = {step: name for step, name in REQUESTABLE.items() if name != EPHEMERAL_STORAGE}
_ZONE_ALLOCATABLE: Final = paths("allocatable", _IN_ZONES)
_ZONE_REQUESTED: Final = paths("requested", _IN_ZONES)


@dataclass(frozen=True, slots=True)
class NodeDemand:
    """What the pods on a node ask for together; `pods` is how many they are."""

    requested: Amounts = field(default_factory=lambda: NOTHING)
    nonzero: Amounts = field(default_factory=lambda: NOTHING)
    pods: int = 0


def node_facts(
    node: Node, demand: NodeDemand, pods: Sequence[Record] = (), zones: Sequence[Record] = ()
) -> Record:
    """What follows from a node and the pods on it.

    Left to the component: measured use (`metric_facts`), sums by band (`usage.prod`, `usage.highPriority`),
    `load`, `hostApplications`, `suppression`.
    """
    physical = physical_allocatable(node)
    requested = {**all_within(demand.requested), PODS: demand.pods}
    nonzero = {**all_within(demand.nonzero), PODS: demand.pods}
    kubelet, annotation = node.kubelet_reserved, annotation_reserved(node)
    record: Record = {
        "name": node.name,
        "labels": node.labels,
        "annotations": node.annotations,
        "unschedulable": node.unschedulable,
        "pods": pods,
        "zones": zones,
        "resources.capacity": node.capacity,
        "resources.allocatable": node.allocatable,
        "resources.physical": physical,
        "resources.requested": requested,
        "resources.nonzeroRequested": nonzero,
    }
    put_all(record, _CAPACITY, node.capacity)
    put_all(record, _ALLOCATABLE, node.allocatable)
    put_all(record, _PHYSICAL, physical)
    put_all(record, _REQUESTED, requested)
    put_all(record, _NONZERO, nonzero)
    put_all(record, _RESERVED, larger(kubelet, annotation))
    put_all(record, _RESERVED_KUBELET, kubelet)
    put_all(record, _RESERVED_ANNOTATION, annotation)
    speed, amplified = _normalization(node), _amplification(node)
    if speed is not None:
        record["cpuNormalization"] = speed
    if amplified is not None:
        record["amplification.cpu"] = amplified
    bandwidth = _bandwidth(node)
    if bandwidth is not None:
        record["networkBandwidth"] = bandwidth
    for path, resource in _FREE:
        record[path] = node.allocatable.get(resource, 0) - requested.get(resource, 0)
    return record


def offer_facts(before: Node, node: Node, demand: NodeDemand) -> Record | None:
    """What of `node_facts` is another where a node offers other amounts of some resources than before, and nothing else of it changed.

    None where more than these facts may follow from the change: from cpu and memory, from labels, and from annotations.
    """
    if before.labels != node.labels or before.unschedulable != node.unschedulable:
        return None
    said, says = before.annotations, node.annotations
    if said is not says and {**said, _ORIGIN: ""} != {**says, _ORIGIN: ""}:
        return None
    if not says.keys().isdisjoint(_ON_AMOUNTS):
        return None
    resources = _others(before.capacity, node.capacity) | _others(before.allocatable, node.allocatable)
    if not resources.isdisjoint(_OF_MACHINES):
        return None
    record: Record = {
        "annotations": says,
        "resources.capacity": node.capacity,
        "resources.allocatable": node.allocatable,
        "resources.physical": {**node.allocatable},
    }
    for resource in resources & _FREE.steps.keys():
        offered = node.allocatable.get(resource, 0)
        record[_CAPACITY.steps[resource]] = node.capacity.get(resource, 0)
        record[_ALLOCATABLE.steps[resource]] = record[_PHYSICAL.steps[resource]] = offered
        record[_FREE.steps[resource]] = offered - within(demand.requested.get(resource, 0))
    return record


def _others(before: Amounts, after: Amounts) -> frozenset[str]:
    """The resources of which there is another amount, or none any more."""
    if before is after:
        return frozenset()
    return frozenset([name for name, _ in before.items() ^ after.items()])


_ORIGIN: Final = ORIGIN_EXTENDED_ALLOCATABLE
"""Written with amounts that are offered, and read by no fact but the annotations themselves."""

_ON_AMOUNTS: Final = (RAW_ALLOCATABLE, NODE_RESERVATION)
"""Annotations by which other amounts follow from those that are offered."""

_OF_MACHINES: Final = frozenset({CPU, MEMORY, PODS})

_OF_OBJECT: Final = (
    "name", "labels", "annotations", "unschedulable", "capacity", "allocatable", "physical", "reserved", "overrides",
    "conditions", "cpuNormalization", "amplification", "networkBandwidth", "usageThresholds", "resources.capacity",
    "resources.allocatable", "resources.physical", "zones", "devices", "deviceLabels", "cpuInfo",
)  # fmt: skip


def of_object(path: str) -> bool:
    """Whether a fact of a node follows from its object, zones and devices, whatever runs and is measured there."""
    return path.startswith(_OF_OBJECT) and not path.startswith("amplified")


def cpu_facts(cpu: CPUInfo) -> Record:
    """What a node's CPUs are."""
    return {
        "cpuInfo.model": cpu.model,
        "cpuInfo.hyperThreading": cpu.hyper_threading,
        "cpuInfo.turbo": cpu.turbo,
    }


def device_facts(found: NodeDevices) -> Record:
    """What devices a node has."""
    return {
        "deviceLabels": found.labels,
        "devices": [
            {
                "type": one.type,
                "healthy": one.healthy,
                "labels": one.labels,
                "resources": one.resources,
            }
            for one in found.devices
        ],
    }


def card_facts(device: Device, free: int, *, used: bool, gradient: int = 50, lot: int = 0) -> Record:
    """A device as it is dealt out: so much of it is free, in percent; what it would mean for usual pods, 0 to 100; its lot."""
    return {
        "type": device.type,
        "healthy": device.healthy,
        "labels": device.labels,
        "resources": device.resources,
        "index": device.minor,
        "numa": device.numa,
        "free": free,
        "used": used,
        "gradient": gradient,
        "lot": lot,
    }


def metric_facts(metric: NodeMetric, now: int, times: Times) -> Record:
    """What a node's report says, as facts of the node. `now` in nanoseconds since 1970.

    Without a time of update there is no age; without a node part in the report there is no usage.
    """
    record: Record = {}
    if metric.updated_at is not None:
        record["metric.updatedAt"] = times.timestamp(metric.updated_at)
        record["metric.age"] = times.duration(within(now - metric.updated_at))
    if metric.prod_reclaimable is not None:
        put_present(record, _RECLAIMABLE, metric.prod_reclaimable)
    if metric.node_usage is None:
        return record
    record["resources.usage"] = metric.node_usage
    put_present(record, _USAGE_TOTAL, metric.node_usage)
    for path, resource in _USAGE_SYSTEM:
        record[path] = metric.system_usage.get(resource, 0)
    for name, where in _USAGE_AGGREGATED.items():
        aggregated = metric.longest(name)
        if aggregated is not None:
            put_present(record, where, aggregated)
    return record


def host_application_facts(application: HostApplicationMetric, band: str) -> Record:
    """What was measured of a host application, and the band policy gives its class."""
    record: Record = {
        "name": application.name,
        "qos": application.qos,
        "band": band,
        "cgroupBase": application.cgroup_base,
    }
    put_all(record, _USAGE, application.usage)
    return record


def zone_facts(index: int, count: int, allocatable: Amounts, capacity: Amounts, requested: Amounts) -> Record:
    """What follows from one NUMA zone of `count`."""
    requested = all_within(requested)
    record: Record = {
        "index": index,
        "count": count,
        "resources.allocatable": allocatable,
        "resources.requested": requested,
    }
    put_all(record, _ZONE_CAPACITY, capacity)
    put_all(record, _ZONE_ALLOCATABLE, allocatable)
    put_all(record, _ZONE_REQUESTED, requested)
    return record


def amount_facts(prefix: str, amounts: Mapping[str, int]) -> Record:
    """cpu and memory under a prefix of the component's own, such as `usage.prod` or `load`."""
    return {f"{prefix}.{step}": within(amounts.get(resource, 0)) for step, resource in _BASIC}


def cluster_facts(name: str, nodes: int, pods: int, allocatable: Amounts, requested: Amounts) -> Record:
    """The cluster as a whole: counts and sums over all nodes."""
    return {
        "name": name,
        "nodes": nodes,
        "pods": pods,
        **amount_facts("allocatable", allocatable),
        **amount_facts("requested", requested),
    }


def _amplification(node: Node) -> float | None:
    try:
        return amplification_ratios(node.annotations).get(CPU)
    except ObjectError:
        return 0.0


def _bandwidth(node: Node) -> int | None:
    try:
        return network_bandwidth(node.annotations)
    except ObjectError:
        return None  # an unreadable bandwidth says nothing


def _normalization(node: Node) -> float | None:
    try:
        return normalization_ratio(node.annotations)
    except ObjectError:
        return None  # an unreadable ratio says nothing
