"""A cluster as lists of objects."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Obj = dict[str, Any]


@dataclass
class Cluster:
    """Objects as JSON. Pods on nodes have `spec.nodeName`; ended ones and unbound ones don't count."""

    nodes: list[Obj] = field(default_factory=list)
    pods: list[Obj] = field(default_factory=list)
    namespaces: list[Obj] = field(default_factory=list)
    volumes: list[Obj] = field(default_factory=list)
    claims: list[Obj] = field(default_factory=list)
    classes: list[Obj] = field(default_factory=list)
    csi_nodes: list[Obj] = field(default_factory=list)
    csi_drivers: list[Obj] = field(default_factory=list)
    capacities: list[Obj] = field(default_factory=list)
    attachments: list[Obj] = field(default_factory=list)

    def pods_on(self, node: str) -> list[Obj]:
        """The pods that count on a node."""
        return [pod for pod in self.placed() if pod["spec"]["nodeName"] == node]

    def placed(self) -> Iterator[Obj]:
        """The pods that count, on any known node."""
        names = {name(node) for node in self.nodes}
        for pod in self.pods:
            over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if pod["spec"].get("nodeName") in names and not over:
                yield pod

    def node(self, wanted: str) -> Obj:
        """The node of a name."""
        return next(node for node in self.nodes if name(node) == wanted)

    def namespace_labels(self, wanted: str) -> dict[str, str]:
        """The labels of a namespace; none when it is not known."""
        for one in self.namespaces:
            if name(one) == wanted:
                return labels(one)
        return {}


def name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def namespace(obj: Obj) -> str:
    return obj["metadata"].get("namespace") or "default"


def labels(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}
