"""The objects of a node as values: the node, its pods and reports, its zones and devices; no table, and little to import."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.totals import ClusterTotals
from koordpolicy.cluster.zones_and_devices import ZonesAndDevices
from koordpolicy.model.devices import NO_DEVICES
from koordpolicy.model.facts import Record
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod, PodKey

if TYPE_CHECKING:
    from koordpolicy.cluster.state import ClusterState


class ObjectsByNode:
    """Nodes, pods and reports as they were last heard of; `state` is what there is beside them.

    A `ClusterListener`: an event handler tells it of each object. Objects that cannot be read are what the table of
    handlers makes of them. Who is told of more than nodes, their reports, zones and devices, and pods is a `ClusterObjects`.
    """

    __slots__ = ("_metrics", "_nodes", "_on", "_over", "_pods", "_totals", "state")

    def __init__(self) -> None:
        self.state = ZonesAndDevices()
        self._nodes: dict[str, Node] = {}
        self._metrics: dict[str, NodeMetric] = {}
        self._pods: dict[PodKey, Pod] = {}
        self._on: dict[str, dict[PodKey, Pod]] = {}
        self._over: set[PodKey] = set()
        self._totals = ClusterTotals(self.sight)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes that can be read, by name."""
        return MappingProxyType(self._nodes)

    @property
    def pods(self) -> Mapping[PodKey, Pod]:
        """All pods, those among them that wait or are over."""
        return MappingProxyType(self._pods)

    def sight(self, name: str) -> NodeSight | None:
        """A node with all that belongs to it; None when there is no such node, or none that can be read."""
        node = self._nodes.get(name)
        if node is None:
            return None
        topology = self.state.zones.get(name)
        return NodeSight(
            node,
            tuple(self._on.get(name, {}).values()),
            self._metrics.get(name),
            () if topology is None else topology.zones,
            None if topology is None else topology.cpu,
            self.state.devices.get(name, NO_DEVICES),
        )

    def has_reported(self, name: str) -> bool:
        """Whether there is a report of a node that can be read."""
        return name in self._metrics

    def cluster_facts(self) -> Record:
        """The cluster as a whole: how many nodes there are, how many pods that are not over, and their sums."""
        return self._totals.facts(len(self._pods) - len(self._over))

    # --- events ---------------------------------------------------------------------------------

    def set_state(self, change: "Callable[[ClusterState], bool | None]", event: Event | None) -> None:
        """Something beside nodes, reports and pods changes."""
        change(cast("ClusterState", self.state))

    def set_node(self, node: Node) -> None:
        """A node is new or has changed."""
        self._nodes[node.name] = node
        self._totals.changed(node.name)

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        self._nodes.pop(name, None)
        self._totals.changed(name)

    def set_metric(self, metric: NodeMetric) -> None:
        """A node has reported."""
        self._metrics[metric.name] = metric

    def remove_metric(self, name: str) -> None:
        """A node's report is gone."""
        self._metrics.pop(name, None)

    def assumed(self, key: PodKey) -> tuple[PodView, str] | None:
        """No pod: nobody decides here."""
        return None

    def set_pod(self, pod: Pod, bound: PodView | None = None) -> None:
        """A pod is new or has changed."""
        before = self._pods.get(pod.key)
        if before is not None and before.node_name != pod.node_name:
            self._leave(before)
        self._pods[pod.key] = pod
        if pod.terminal:
            self._over.add(pod.key)
        else:
            self._over.discard(pod.key)
        if pod.node_name:
            self._totals.changed(pod.node_name)
            self._on.setdefault(pod.node_name, {})[pod.key] = pod

    def hold_back(self, pod: Pod) -> None:
        """A pod without a node cannot be read as a whole."""
        self.set_pod(pod)

    def remove_pod(self, key: PodKey) -> None:
        """A pod is gone."""
        before = self._pods.pop(key, None)
        self._over.discard(key)
        if before is not None:
            self._leave(before)

    def _leave(self, pod: Pod) -> None:
        there = self._on.get(pod.node_name)
        if there is not None:
            self._totals.changed(pod.node_name)
            there.pop(pod.key, None)
            if not there:
                del self._on[pod.node_name]
