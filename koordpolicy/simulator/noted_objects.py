"""The objects of a simulated cluster, and of which nodes something has changed."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.kube.port import Object
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod, PodKey


class ChangedNodes(NamedTuple):
    """The names of nodes of which anything has changed, and of those of which more has than the pods on them."""

    any: frozenset[str]
    beyond_pods: frozenset[str]


class NotedObjects(ClusterObjects):
    """Notes nodes that changed, and those to which or from which pods came or went."""

    __slots__ = ("_changed", "_crowds")

    def __init__(self) -> None:
        super().__init__()
        self._changed: set[str] = set()
        self._crowds: set[str] = set()

    def take_changed(self) -> ChangedNodes:
        """The nodes of which something has changed since somebody asked."""
        found = ChangedNodes(frozenset(self._changed | self._crowds), frozenset(self._changed))
        self._changed, self._crowds = set(), set()
        return found

    def note_changed(self, node: str) -> None:
        """Something of a node is another that no object says."""
        self._changed.add(node)

    def forget_changed(self, node: str) -> None:
        """Whoever changed a node knows it."""
        self._changed.discard(node)
        self._crowds.discard(node)

    def set_state(self, change: Callable[[ClusterState], bool | None], event: Event | None) -> None:
        super().set_state(change, event)
        if event in _OF_NODES:
            self._changed.update(self.nodes)

    def set_node(self, node: Node) -> None:
        super().set_node(node)
        self._changed.add(node.name)

    def remove_node(self, name: str) -> None:
        super().remove_node(name)
        self._changed.add(name)

    def set_pod(self, pod: Pod, bound: PodView | None = None) -> None:
        before = self.pods.get(pod.key)
        super().set_pod(pod, bound)
        self._note(pod)
        if before is not None:
            self._note(before)

    def remove_pod(self, key: PodKey) -> None:
        before = self.pods.get(key)
        super().remove_pod(key)
        if before is not None:
            self._note(before)

    def _note(self, pod: Pod) -> None:
        if pod.node_name:
            self._crowds.add(pod.node_name)


_OF_NODES = frozenset({Event.NODE_CHANGED, Event.DEVICES_CHANGED, Event.CPUS_CHANGED})
"""What is said of nodes by objects of other kinds: their zones, CPUs and devices."""


def together(one: Object, other: Object) -> Object:
    """An object with the changes of another on it, field by field; lists are replaced."""
    result: dict[str, Any] = dict(one)
    for key, value in other.items():
        known = result.get(key)
        result[key] = (
            together(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
        )
    return result
