"""The fact records of a node for the manager's decisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koordpolicy.language.facts import TIMES
from koordpolicy.mechanism.classify import Catalogue
from koordpolicy.mechanism.records import host_application_records, pods_on_node, usage_of
from koordpolicy.model.facts import Record
from koordpolicy.model.facts_node import NodeDemand, amount_facts, metric_facts, node_facts, zone_facts
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.numa import Zone, zone_allocations
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import Amounts, ObjectError

_PROD = "prod"
"""The band whose use has a fact of its own."""


@dataclass(frozen=True, slots=True)
class NodeSight:
    """A node as the manager sees it: its pods, its last report, its NUMA zones (none when unknown)."""

    node: Node
    pods: Sequence[Pod] = ()
    metric: NodeMetric | None = None
    zones: Sequence[Zone] = ()


def node_record(sight: NodeSight, catalogue: Catalogue, now: int) -> Record:
    """All facts of the node; `now` in nanoseconds since 1970."""
    pods = pods_on_node(sight.pods, sight.metric, catalogue, TIMES)
    record = node_facts(sight.node, _demand(pods), pods, _zones(sight))
    record["hostApplications"] = []
    if sight.metric is not None:
        record.update(metric_facts(sight.metric, now, TIMES))
        record["hostApplications"] = host_application_records(sight.metric, catalogue)
        record.update(amount_facts("usage.prod", usage_of(pods, [_PROD])))
    return record


def with_usage_above(record: Record, bands: Iterable[str]) -> Record:
    """The record for a decision on a band: what pods outside of these bands, itself and below, use."""
    pods: Sequence[Record] = record["pods"]  # type: ignore[assignment]  # as node_record puts it there
    return {**record, **amount_facts("usage.highPriority", usage_of(pods, bands, outside=True))}


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
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, 0) + amount
    return total
