"""Several listeners as one: an object is read once for all of them."""

from collections.abc import Callable, Sequence

from koordpolicy.cluster.event_handlers import ClusterListener
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod, PodKey


class Listeners:
    """A `ClusterListener` that tells all of `listeners`, in their order. None of them assumes pods on nodes."""

    def __init__(self, *listeners: ClusterListener) -> None:
        self.listeners: Sequence[ClusterListener] = listeners

    def assumed(self, key: PodKey) -> tuple[PodView, str] | None:
        """See `ClusterListener`."""
        return None

    def set_state(self, change: Callable[[ClusterState], bool | None], event: Event | None) -> None:
        """See `ClusterListener`."""
        for one in self.listeners:
            one.set_state(change, event)

    def set_node(self, node: Node) -> None:
        """See `ClusterListener`."""
        for one in self.listeners:
            one.set_node(node)

    def remove_node(self, name: str) -> None:
        """See `ClusterListener`."""
        for one in self.listeners:
            one.remove_node(name)

    def set_metric(self, metric: NodeMetric) -> None:
        """See `ClusterListener`."""
        for one in self.listeners:
            one.set_metric(metric)

    def remove_metric(self, name: str) -> None:
        """See `ClusterListener`."""
        for one in self.listeners:
            one.remove_metric(name)

    def set_pod(self, pod: Pod, bound: PodView | None = None) -> None:
        """See `ClusterListener`."""
        for one in self.listeners:
            one.set_pod(pod, bound)

    def hold_back(self, pod: Pod) -> None:
        """See `ClusterListener`."""
        for one in self.listeners:
            one.hold_back(pod)

    def remove_pod(self, key: PodKey) -> None:
        """See `ClusterListener`."""
        for one in self.listeners:
            one.remove_pod(key)
