"""The objects of a simulated cluster, and of which nodes something has changed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.kube.port import MergePatch, Object
from koordpolicy.manager.controllers.controller import PlannedWrite
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod, PodKey


class NotedObjects(ClusterObjects):
    """Notes nodes that changed, and those to which or from which pods came or went."""

    __slots__ = ("_changed",)

    def __init__(self) -> None:
        super().__init__()
        self._changed: set[str] = set()

    def take_changed(self) -> frozenset[str]:
        """The names of nodes of which something has changed since somebody asked."""
        changed, self._changed = self._changed, set()
        return frozenset(changed)

    def note_changed(self, node: str) -> None:
        """Something of a node is another that no object says."""
        self._changed.add(node)

    def forget_changed(self, node: str) -> None:
        """Whoever changed a node knows it."""
        self._changed.discard(node)

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
            self._changed.add(pod.node_name)


_OF_NODES = frozenset({Event.NODE_CHANGED, Event.DEVICES_CHANGED, Event.CPUS_CHANGED})
"""What is said of nodes by objects of other kinds: their zones, CPUs and devices."""


def merged(writes: Sequence[PlannedWrite]) -> Sequence[PlannedWrite]:
    """Writes of one object as one, where they go to the same place."""
    found: dict[tuple[str, str], PlannedWrite] = {}
    for write in writes:
        at = str(write.resource), write.subresource
        known = found.get(at)
        body = write.patch.body if known is None else together(known.patch.body, write.patch.body)
        found[at] = PlannedWrite(write.resource, write.name, MergePatch(body), write.subresource)
    return tuple(found.values())


def together(one: Object, other: Object) -> Object:
    """An object with the changes of another on it, field by field; lists are replaced."""
    result: dict[str, Any] = dict(one)
    for key, value in other.items():
        known = result.get(key)
        result[key] = (
            together(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
        )
    return result
