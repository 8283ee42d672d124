"""The whole fact record of a node, as the manager and the agent see it: pods, report, zones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.node_overrides import override_facts
from koordpolicy.algorithms.records import PodRecords, host_application_records, pods_on_node, usage_of
from koordpolicy.model.amounts import add_to
from koordpolicy.model.devices import NO_DEVICES, NodeDevices
from koordpolicy.model.facts import Record, Times
from koordpolicy.model.facts.node import (
    NodeDemand,
    amount_facts,
    cpu_facts,
    device_facts,
    metric_facts,
    node_facts,
    zone_facts,
)
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.numa import CPUInfo, Zone, zone_allocations
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import Amounts, ObjectError

_PROD = "prod"
"""The band whose use has a fact of its own."""


@dataclass(frozen=True, slots=True)
class NodeSight:
    """A node with its pods, what was last measured on it, its NUMA zones (none when unknown), CPUs and devices."""

    node: Node
    pods: Sequence[Pod] = ()
    metric: NodeMetric | None = None
    zones: Sequence[Zone] = ()
    cpu: CPUInfo | None = None
    devices: NodeDevices = NO_DEVICES


def node_record(
    sight: NodeSight, catalogue: Catalogue, times: Times, now: int, known: PodRecords | None = None
) -> Record:
    """All facts of the node that follow from objects and classes; `now` in nanoseconds since 1970.

    `known` are records of pods that are not to be made anew.
    """
    pods = pods_on_node(sight.pods, sight.metric, catalogue, times, known)
    record = _of_object(sight.node, _demand(pods), pods, _zones(sight), times)
    record["hostApplications"] = []
    record.update(device_facts(sight.devices))
    if sight.cpu is not None:
        record.update(cpu_facts(sight.cpu))
    if sight.metric is not None:
        record.update(metric_facts(sight.metric, now, times))
        record["hostApplications"] = host_application_records(sight.metric, catalogue)
        record.update(amount_facts("usage.prod", usage_of(pods, [_PROD])))
    return record


def object_record(node: Node, times: Times) -> Record:
    """The facts that follow from a node's object alone."""
    return _of_object(node, NodeDemand(), (), (), times)


def _of_object(
    node: Node, demand: NodeDemand, pods: Sequence[Record], zones: Sequence[Record], times: Times
) -> Record:
    record = node_facts(node, demand, pods, zones)
    record["conditions"] = {one.type: one.status for one in node.conditions}
    record.update(override_facts(node, times))
    return record


def _demand(pods: Sequence[Record]) -> NodeDemand:
    active = [pod for pod in pods if pod["active"] and pod["known"]]
    return NodeDemand(
        _sum(pod["resources.request"] for pod in active),
        _sum(pod["resources.nonzeroRequest"] for pod in active),
        len(active),
    )


def _zones(sight: NodeSight) -> list[Record]:
    allocated: list[Mapping[int, Amounts]] = []
    for pod in sight.pods:
        try:
            allocated.append({} if pod.terminal else zone_allocations(pod.annotations))
        except ObjectError:
            continue  # an unreadable allocation binds the pod to no zone
    return [
        zone_facts(
            index,
            len(sight.zones),
            zone.allocatable,
            zone.capacity,
            _sum(one[index] for one in allocated if index in one),
        )
        for index, zone in enumerate(sight.zones)
    ]


def _sum(lists: Iterable[Any]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in lists:
        add_to(total, amounts)
    return total
