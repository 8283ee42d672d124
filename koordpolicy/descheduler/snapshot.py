"""What a round sees: the nodes of a cluster and their pods, as facts, at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.node_affinity import matches, preference
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.records import PodRecords, pod_record
from koordpolicy.algorithms.toleration import NO_SCHEDULE, PREFER_NO_SCHEDULE, tolerated, tolerates_all
from koordpolicy.algorithms.work import Work
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.movable_pod import movable_pod_facts, on_node_facts
from koordpolicy.model.facts.pod import placed_pod_facts
from koordpolicy.model.node import Node
from koordpolicy.model.placement import ANYWHERE, Placement, read_placement
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.reading import Amounts, ObjectError

_AT_HOME: Final = on_node_facts()
_READY: Final = "Ready"
_TRUE: Final = "True"


@dataclass(eq=False, slots=True)
class SeenPod:
    """A pod on a node. `usage` is what was measured of it, None where nothing was; `facts` are those of the fact `pod`."""

    pod: Pod
    row: int
    facts: Record
    usage: Amounts | None
    _placement: Placement | None = field(default=None, init=False)

    @property
    def request(self) -> Amounts:
        """What it requests as a whole."""
        request: Amounts = self.facts["resources.request"]  # type: ignore[assignment]  # the fact's type says so
        return request

    @property
    def placement(self) -> Placement | None:
        """Where it may go; None where its spec cannot be read."""
        if self._placement is None:
            try:
                self._placement = read_placement(self.pod.raw) if self.pod.raw else ANYWHERE
            except ObjectError:
                return None
        return self._placement


@dataclass(eq=False)
class SeenNode:
    """A node with its pods, and with those that have `ended` and are there still. `free` is what pods may still request of it, as moves
    of the round leave it.
    """

    row: int
    sight: NodeSight
    facts: Record
    pods: Sequence[SeenPod] = ()
    ended: Sequence[SeenPod] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.sight.node.name

    @cached_property
    def free(self) -> dict[str, int]:
        """Allocatable less requested, by resource; what it does not publish it has nothing of."""
        allocatable: Any = self.facts["resources.allocatable"]
        requested: Any = self.facts["resources.requested"]
        return {name: amount - requested.get(name, 0) for name, amount in allocatable.items()}

    def takes(self, pod: SeenPod) -> bool:
        """Whether a pod may go there, and what it requests is free. The number of pods is not looked at."""
        node, placement = self.sight.node, pod.placement
        return (
            placement is not None
            and not node.unschedulable
            and all(amount <= self.free.get(name, 0) for name, amount in pod.request.items() if amount > 0)
            and matches(placement, node.name, node.labels)
            and tolerates_all(placement.tolerations, node.taints)
        )

    def add(self, request: Amounts, sign: int) -> None:
        """What is requested there is more (1) or less (-1) than it was."""
        for name, amount in request.items():
            self.free[name] = self.free.get(name, 0) - sign * amount


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The nodes that are ready, in the order in which they came; `now` in nanoseconds since 1970."""

    nodes: Sequence[SeenNode]
    now: int


def movable_pod_records() -> PodRecords:
    """What keeps the facts of pods from round to round."""
    return PodRecords(movable_pod_facts)


def snapshot_of(
    objects: ClusterObjects, catalogue: Catalogue, now: int, known: PodRecords | None = None
) -> Work[ClusterSnapshot]:
    """What there is now, each node as it is when its turn comes. `known` are `movable_pod_records` that need not be made anew."""
    nodes: list[SeenNode] = []
    records = movable_pod_records() if known is None else known
    for name in tuple(objects.nodes):
        yield
        sight = objects.sight(name)
        if sight is None or not _ready(sight):
            continue
        facts = node_record(sight, catalogue, TIMES, now, records)
        row = len(nodes)
        pods = _pods(sight, facts, row)
        ended = [pod for pod in pods if pod.pod.terminal]
        running = [pod for pod in pods if not pod.pod.terminal] if ended else pods
        nodes.append(SeenNode(row, sight, facts, running, ended))
    return ClusterSnapshot(nodes, now)


@dataclass(frozen=True, slots=True)
class PodSight:
    """One pod with the facts that policy asks about it and its node; those of the node are empty while it has none."""

    pod: Pod
    facts: Record
    node: Record


def sight_of(objects: ClusterObjects, pod: Pod, catalogue: Catalogue, now: int) -> PodSight:
    """A pod as it is now."""
    facts: Record = {**pod_record(pod, catalogue, TIMES), **placed_pod_facts(pod), **movable_pod_facts(pod)}
    sight = objects.sight(pod.node_name) if pod.node_name else None
    if sight is not None:
        facts.update(_on_its_node(SeenPod(pod, 0, facts, None), sight.node))
    return PodSight(pod, facts, {} if sight is None else node_record(sight, catalogue, TIMES, now))


def _ready(sight: NodeSight) -> bool:
    return all(one.status == _TRUE for one in sight.node.conditions if one.type == _READY)


def _pods(sight: NodeSight, facts: Record, row: int) -> list[SeenPod]:
    by_key: dict[PodKey, Pod] = {pod.key: pod for pod in sight.pods}
    measured: Mapping[PodKey, Amounts] = (
        {} if sight.metric is None else {one.key: one.usage for one in sight.metric.pods}
    )
    found = []
    records: Any = facts["pods"]
    for record in records:
        if not record["known"]:
            continue
        pod = by_key[record["namespace"], record["name"]]
        seen = SeenPod(pod, row, record, measured.get(pod.key))
        record.update(_on_its_node(seen, sight.node))
        found.append(seen)
    return found


def _on_its_node(pod: SeenPod, node: Node) -> Record:
    """Whether the pod would be let on its node as that is now. One whose spec cannot be read is as it should be."""
    spec = pod.pod.raw.get("spec")
    asks = isinstance(spec, dict) and bool(spec.get("nodeSelector") or spec.get("affinity"))
    if not asks and not node.taints:
        return _AT_HOME
    placement = pod.placement
    if placement is None:
        return _AT_HOME

    def not_tolerated(effect: str) -> list[str]:
        return [
            f"{one.key}={one.value}" if one.value else one.key
            for one in node.taints
            if one.effect == effect and not tolerated(placement.tolerations, one)
        ]

    return on_node_facts(
        not_tolerated(NO_SCHEDULE),
        not_tolerated(PREFER_NO_SCHEDULE),
        matches=matches(placement, node.name, node.labels),
        preference=preference(placement.preferred, node.name, node.labels),
    )
