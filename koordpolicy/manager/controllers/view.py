"""What the manager knows of the cluster's nodes, from local copies that others keep up to date."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.kube import resources
from koordpolicy.kube.mirror import Key, Mirror
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import read_node
from koordpolicy.model.numa import read_zones
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.reading import mapping, text
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.model.unreadable_pod import readable_part

_T = TypeVar("_T")

BY_NODE: Final = "node"
"""The index of the pods' mirror: by the node they are bound to."""


def node_of_pod(pod: Object) -> tuple[str, ...]:
    """The index function for `BY_NODE`. Raises ObjectError."""
    name = text(mapping(pod, "spec"), "nodeName", "spec")
    return (name,) if name else ()


def pods_mirror() -> Mirror:
    """An empty mirror of pods with the index that the view needs."""
    return Mirror(indexes={BY_NODE: node_of_pod})


@dataclass(slots=True)
class ClusterView:
    """Mirrors of the four resources that overcommitment looks at. `unreadable` is where objects are noted that
    cannot be read.

    Objects are parsed once a version. A node that cannot be read counts as not there, so that what it offers stays;
    so does a report or a topology. A pod takes what can be read of it, and all of its node where that cannot be told.
    """

    nodes: Mirror = field(default_factory=Mirror)
    pods: Mirror = field(default_factory=pods_mirror)
    metrics: Mirror = field(default_factory=Mirror)
    topologies: Mirror = field(default_factory=Mirror)
    unreadable: UnreadableObjects = field(default_factory=lambda: UnreadableObjects(_nobody_listens))
    _parsed: dict[Key, tuple[str, Pod]] = field(default_factory=dict)

    def sight(self, name: str) -> NodeSight | None:
        """The node with all that belongs to it; None when there is no such node, or none that can be read."""
        node = self._read(resources.NODES, self.nodes, name, read_node)
        if node is None:
            return None
        return NodeSight(
            node,
            [self._pod(pod) for pod in self.pods.indexed(BY_NODE, name)],
            self._read(resources.NODE_METRICS, self.metrics, name, read_node_metric),
            self._read(resources.NODE_RESOURCE_TOPOLOGIES, self.topologies, name, read_zones) or (),
        )

    def _read(self, resource: Resource, mirror: Mirror, name: str, read: Callable[[Object], _T]) -> _T | None:
        obj = mirror.get(name)
        return None if obj is None else self._or_noted(resource, ("", name), obj, readable(read, obj))

    def _or_noted(self, resource: Resource, key: Key, obj: Object, found: _T | Unreadable) -> _T | None:
        if isinstance(found, Unreadable):
            self.unreadable.found(resource, key, obj, found)
            return None
        self.unreadable.gone(resource, key)
        return found

    def _pod(self, obj: Object) -> Pod:
        metadata = obj["metadata"]
        key, version = (
            (metadata.get("namespace") or "", metadata["name"]),
            metadata.get("resourceVersion", ""),
        )
        known = self._parsed.get(key)
        if known is None or known[0] != version:
            self._forget_the_gone()
            pod = self._or_noted(resources.PODS, key, obj, readable(read_pod, obj)) or readable_part(obj)
            known = self._parsed[key] = (version, pod)
        return known[1]

    def _forget_the_gone(self) -> None:
        """Let go of pods that are no more, each time they could be as many as those that are."""
        if len(self._parsed) > 2 * len(self.pods.objects) + 100:
            self._parsed = {key: one for key, one in self._parsed.items() if key in self.pods.objects}


def _nobody_listens(_resource: Resource, _obj: Object, _why: Unreadable) -> None:
    pass
