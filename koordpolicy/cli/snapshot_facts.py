"""A snapshot as records for questions, made by the same readers that the components use."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from koordpolicy.agent.facts import agent_record
from koordpolicy.agent.strategies.suppression import KIND as SUPPRESS
from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.records import pod_record, submitted_pod_record, usage_of
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.cache_listener import CacheListener
from koordpolicy.cluster.event_handlers import ClusterListener, replay
from koordpolicy.cluster.loads import LoadPolicy
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import view_of
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import bands_up_to
from koordpolicy.graph.diff.affected import Roots
from koordpolicy.kube.resources import (
    NAMESPACES,
    NODE_METRICS,
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    PODS,
)
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.overcommit import KIND as OVERCOMMIT
from koordpolicy.model.amounts import add_to
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import amount_facts, cluster_facts
from koordpolicy.model.pod import Pod
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.scheduler.profile import KIND as PROFILE

_READ: Final = frozenset({NAMESPACES, NODES, NODE_METRICS, NODE_RESOURCE_TOPOLOGIES, PODS})
"""What records are made of."""


class SnapshotFacts:
    """The nodes, zones, pods and containers of a snapshot, each time as the component that asks would see them.

    An object that cannot be read counts as it does for the components (see `event_handlers.handle`). `unreadable`
    says which.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.unreadable: dict[str, str] = {}
        self._read_nodes: dict[tuple[str, str], list[tuple[str, Roots]]] = {}
        self._read_pods: dict[str, list[tuple[str, Roots]]] = {}
        self._read_common: dict[str, Mapping[str, Any]] = {}

    def nodes(self, graph: RuleGraph, target: str) -> Iterable[tuple[str, Roots]]:
        """See `ClusterFacts`."""
        key = (graph.digest, target)
        known = self._read_nodes.get(key)
        if known is None:
            known = self._read_nodes[key] = list(self._nodes(graph, target))
        return known

    def _nodes(self, graph: RuleGraph, target: str) -> Iterator[tuple[str, Roots]]:
        common = self._common(graph)
        if target.startswith(f"{PROFILE}/"):
            cache = self._cache(graph, target)
            for name in self._sights:
                if name in cache:
                    yield name, {**common, "node": cache.table.row(cache.table.index(name))}
            return
        read = self._reader(graph, target)
        for name, sight in self._sights.items():
            yield name, {**common, "node": read(sight)}

    def zones(self, graph: RuleGraph, target: str) -> Iterator[tuple[str, Roots]]:
        """See `ClusterFacts`."""
        for name, roots in self.nodes(graph, target):
            for at, zone in enumerate(roots["node"].get("zones", ())):
                yield f"{name}/zone-{at}", {**roots, "zone": zone}

    def pods(self, graph: RuleGraph, target: str) -> Iterable[tuple[str, Roots]]:
        """See `ClusterFacts`."""
        known = self._read_pods.get(graph.digest)
        if known is None:
            common = self._common(graph)
            known = self._read_pods[graph.digest] = [
                ("/".join(pod.key), {**common, **self._of(pod, graph)}) for pod in self._objects.pods.values()
            ]
        return known

    def containers(self, graph: RuleGraph, target: str) -> Iterator[tuple[str, Roots]]:
        """See `ClusterFacts`."""
        for name, roots in self.pods(graph, target):
            for container in roots["pod"].get("containers", ()):
                yield f"{name}/{container['name']}", {**roots, "container": container}

    def placements(self, graph: RuleGraph, target: str) -> Iterator[tuple[str, Roots]]:
        """Every pod that has a node, with that node as it would be without it: would the pod still be put there?"""
        common = self._common(graph)
        scheduling = target.startswith(f"{PROFILE}/")
        cache = self._cache(graph, target) if scheduling else None
        read = self._reader(graph, target)
        for pod in self._objects.pods.values():
            sight = self._sights.get(pod.node_name)
            if sight is None or pod.terminal or (cache is not None and pod.node_name not in cache):
                continue
            node = read(sight) if cache is None else _without(cache, pod)
            yield "/".join(pod.key), {**common, **self._of(pod, graph), "node": node}

    def _reader(self, graph: RuleGraph, target: str) -> Callable[[NodeSight], Record]:
        """How the component that decides on a target sees a node."""
        now = self._snapshot.taken
        kind, _, subject = target.partition("/")
        if kind == SUPPRESS:
            suppression = CPUSuppression(graph)
            return lambda sight: agent_record(graph, suppression, sight, now)

        def read(sight: NodeSight) -> Record:
            record = node_record(sight, graph.catalogue, TIMES, now)
            if kind == OVERCOMMIT:
                pods: Any = record["pods"]
                above = usage_of(pods, bands_up_to(graph, subject), outside=True)
                return {**record, **amount_facts("usage.highPriority", above)}
            return record

        return read

    def _cache(self, graph: RuleGraph, target: str) -> ClusterCache:
        """The scheduler's own table of the cluster, for one of its profiles."""
        policy = LoadPolicy(graph, target.partition("/")[2])
        cache = ClusterCache(policy, graph.catalogue, _node_facts(graph, target))
        taken = self._snapshot.taken
        listener = CacheListener(
            cache, lambda pod: view_of(pod, graph.catalogue, policy.estimate), lambda: taken
        )
        self._replay(listener)
        cache.renew_metrics(taken)
        return cache

    def _of(self, pod: Pod, graph: RuleGraph) -> dict[str, Any]:
        record = readable(lambda one: submitted_pod_record(one, graph.catalogue, TIMES), pod)
        if isinstance(record, Unreadable):
            self.unreadable.setdefault(f"{PODS} {'/'.join(pod.key)}", record.reason)
            record = pod_record(pod, graph.catalogue, TIMES)
        return {
            "pod": record,
            "namespaceObject": self._objects.state.namespaces.get(pod.key[0], {}),
            "operation": "CREATE",
        }

    def _common(self, graph: RuleGraph) -> Mapping[str, Any]:
        """What is the same for all."""
        known = self._read_common.get(graph.digest)
        if known is None:
            known = self._read_common[graph.digest] = self._made_common(graph)
        return known

    def _made_common(self, graph: RuleGraph) -> dict[str, Any]:
        sights = self._sights.values()
        facts = [node_record(sight, graph.catalogue, TIMES, self._snapshot.taken) for sight in sights]
        return {
            "now": TIMES.timestamp(self._snapshot.taken),
            "cluster": cluster_facts(
                "",
                len(facts),
                len(self._objects.pods),
                _total(one["resources.allocatable"] for one in facts),
                _total(one["resources.requested"] for one in facts),
            ),
        }

    @cached_property
    def _objects(self) -> ClusterObjects:
        """The objects of the snapshot, read."""
        found = ClusterObjects()
        self._replay(found)
        return found

    def _replay(self, listener: ClusterListener) -> None:
        """Let a listener know the snapshot, and note what it cannot read."""
        for resource, obj, why in replay(self._snapshot.of, listener, _READ):
            metadata = obj["metadata"]
            name = f"{metadata.get('namespace') or ''}/{metadata['name']}".lstrip("/")
            self.unreadable[f"{resource} {name}"] = why.reason

    @cached_property
    def _sights(self) -> dict[str, NodeSight]:
        found = ((name, self._objects.sight(name)) for name in self._objects.nodes)
        return {name: sight for name, sight in found if sight is not None}


def _without(cache: ClusterCache, pod: Pod) -> Record:
    """The row of a pod's node as it would be without the pod."""
    with cache.trial(rows_only=True):
        cache.displace(pod.key)
        return dict(cache.table.row(cache.table.index(pod.node_name)))


def _node_facts(graph: RuleGraph, target: str) -> frozenset[str]:
    """The facts of nodes that decisions of a target read; what nobody reads need not be counted."""
    return frozenset(
        path
        for key in graph.decisions
        if key.target == target
        for root, path in facts_of(graph.expression(str(key)))
        if root == "node"
    )


def _total(lists: Iterable[Any]) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for amounts in lists:
        add_to(total, amounts)
    return total
