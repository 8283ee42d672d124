"""A cache that event handlers feed by themselves: for those who ask about a cluster's rows, and decide on nothing there."""

from collections.abc import Callable

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod, PodKey


class CacheListener:
    """A `ClusterListener` that keeps `cache` up to date, and nothing else.

    `view` says what a pod means there, `clock` is the time in nanoseconds since 1970. Pods without a node are nowhere.
    """

    __slots__ = ("_cache", "_clock", "_view")

    def __init__(self, cache: ClusterCache, view: Callable[[Pod], PodView], clock: Callable[[], int]) -> None:
        self._cache = cache
        self._view = view
        self._clock = clock

    def set_state(self, change: Callable[[ClusterState], bool | None], event: Event | None) -> None:
        """Something beside nodes, reports and pods changes."""
        change(self._cache.state)

    def set_node(self, node: Node) -> None:
        """A node is new or has changed."""
        self._cache.set_node(node)

    def remove_node(self, name: str) -> None:
        """A node is gone, or cannot be read."""
        self._cache.remove_node(name)

    def set_metric(self, metric: NodeMetric) -> None:
        """A node has reported."""
        self._cache.set_metric(metric)

    def remove_metric(self, name: str) -> None:
        """A node's report is gone."""
        self._cache.remove_metric(name)

    def assumed(self, key: PodKey) -> tuple[PodView, str] | None:
        """No pod: nobody decides here."""
        return None

    def set_pod(self, pod: Pod, bound: PodView | None = None) -> None:
        """A pod is new or has changed."""
        if pod.node_name and not pod.terminal:
            self._cache.place(bound or self._view(pod), pod.node_name, self._clock())
        else:
            self._cache.displace(pod.key)

    def hold_back(self, pod: Pod) -> None:
        """A pod without a node cannot be read as a whole."""
        self._cache.displace(pod.key)

    def remove_pod(self, key: PodKey) -> None:
        """A pod is gone."""
        self._cache.displace(key)
