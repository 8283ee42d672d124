"""Sums over all nodes and pods, kept up to date node by node: `cluster.*` for those who decide without a table."""

from collections.abc import Callable

from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.model.amounts import add_to
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import cluster_facts
from koordpolicy.model.reading import NOTHING, Amounts


class ClusterTotals:
    """What all nodes have together, and what the pods on them request.

    `sight` gives a node with its pods, None where there is none. Of nodes that changed only these are looked at anew,
    when somebody asks.
    """

    __slots__ = ("_allocatable", "_changed", "_of", "_requested", "_sight")

    def __init__(self, sight: Callable[[str], NodeSight | None]) -> None:
        self._sight = sight
        self._changed: set[str] = set()
        self._of: dict[str, tuple[Amounts, Amounts]] = {}
        self._allocatable: dict[str, int] = {}
        self._requested: dict[str, int] = {}

    def changed(self, node: str) -> None:
        """A node, or what is on it, is another."""
        self._changed.add(node)

    def facts(self, pods: int) -> Record:
        """The record `cluster`; `pods` is how many there are that are not over."""
        for name in self._changed:
            self._renew(name)
        self._changed.clear()
        return cluster_facts("", len(self._of), pods, self._allocatable, self._requested)

    def _renew(self, name: str) -> None:
        allocatable, requested = self._of.pop(name, (NOTHING, NOTHING))
        add_to(self._allocatable, {resource: -number for resource, number in allocatable.items()})
        add_to(self._requested, {resource: -number for resource, number in requested.items()})
        sight = self._sight(name)
        if sight is None:
            return
        asked: dict[str, int] = {}
        for pod in sight.pods:
            if not pod.terminal:
                add_to(asked, effective_requests(pod))
        self._of[name] = sight.node.allocatable, asked
        add_to(self._allocatable, sight.node.allocatable)
        add_to(self._requested, asked)
