"""What the manager knows of the cluster's nodes, from local copies that others keep up to date."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from koordpolicy.kube.mirror import Key, Mirror
from koordpolicy.kube.port import Object
from koordpolicy.mechanism.node_record import NodeSight
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import read_node
from koordpolicy.model.numa import read_zones
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.reading import ObjectError

_T = TypeVar("_T")

BY_NODE: Final = "node"
"""The index of the pods' mirror: by the node they are bound to."""


def node_of_pod(pod: Object) -> tuple[str, ...]:
    """The index function for `BY_NODE`."""
    name = pod["spec"].get("nodeName")
    return (name,) if name else ()


def pods_mirror() -> Mirror:
    """An empty mirror of pods with the index that the view needs."""
    return Mirror(indexes={BY_NODE: node_of_pod})


@dataclass(slots=True)
class ClusterView:
    """Mirrors of the four resources that overcommitment looks at.

    Objects are parsed once a version. A malformed pod, report or topology counts as not there: the API server
    or the agent that wrote it has to answer for it, and one such object must not stop the node's controller.
    """

    nodes: Mirror = field(default_factory=Mirror)
    pods: Mirror = field(default_factory=pods_mirror)
    metrics: Mirror = field(default_factory=Mirror)
    topologies: Mirror = field(default_factory=Mirror)
    _parsed: dict[Key, tuple[str, Pod | None]] = field(default_factory=dict)

    def sight(self, name: str) -> NodeSight | None:
        """The node with all that belongs to it; None when there is no such node. Raises ObjectError."""
        node = self.nodes.get(name)
        if node is None:
            return None
        metric, topology = self.metrics.get(name), self.topologies.get(name)
        return NodeSight(
            read_node(node),
            [pod for pod in map(self._pod, self.pods.indexed(BY_NODE, name)) if pod is not None],
            None if metric is None else _unless_malformed(read_node_metric, metric),
            () if topology is None else _unless_malformed(read_zones, topology) or (),
        )

    def _pod(self, obj: Object) -> Pod | None:
        metadata = obj["metadata"]
        key, version = (metadata.get("namespace", ""), metadata["name"]), metadata["resourceVersion"]
        known = self._parsed.get(key)
        if known is None or known[0] != version:
            self._forget_the_gone()
            known = self._parsed[key] = (version, _unless_malformed(read_pod, obj))
        return known[1]

    def _forget_the_gone(self) -> None:
        """Let go of pods that are no more, each time they could be as many as those that are."""
        if len(self._parsed) > 2 * len(self.pods.objects) + 100:
            self._parsed = {key: one for key, one in self._parsed.items() if key in self.pods.objects}


def _unless_malformed(read: Callable[[Object], _T], obj: Object) -> _T | None:
    try:
        return read(obj)
    except ObjectError:
        return None
