"""NodeMetric objects, one a node: what its agent is to measure. What it measured stands in their status, which is not ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.node_record import node_record
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.controller import Choose
from koordpolicy.manager.controllers.node_object import difference, remove_after_node, write_spec
from koordpolicy.model.time import NANOSECONDS, whole_seconds_text

KIND: Final = "MetricCollection"
_POLICY: Final = "metricCollectPolicy"


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """What is to become of a node's NodeMetric object.

    `patch` is None where there is no such object yet, which then gets `spec`. An empty patch writes nothing. `problem` is a
    phrase about what could not be decided.
    """

    node: str
    spec: Mapping[str, Any]
    patch: Mapping[str, Any] | None
    problem: str = ""


Told = Callable[[RuleGraph, CollectionPlan], None]
"""Told of every plan, with the graph that was asked."""


def _untold(graph: RuleGraph, plan: CollectionPlan) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class NodeMetricController:
    """Keeps the NodeMetric objects of all nodes, `known` by name, as the graph that `policies` gives for a node says.

    `now` is nanoseconds since 1970. Where policies fail or do not speak of a node, its object stays, and none is made.
    """

    policies: Choose
    objects: ClusterObjects
    known: Callable[[str], Object | None]
    now: Callable[[], int]
    told: Told = _untold

    def decide(self, name: str) -> CollectionPlan | None:
        """What is to be written for a node; None when there is no such node, or none that can be read."""
        sight = self.objects.sight(name)
        if sight is None:
            return None
        graph, now = self.policies(name, sight.node.labels), self.now()
        if not graph.subjects(KIND):
            return CollectionPlan(name, {}, {})
        existing = self.known(name)
        try:
            about = graph.about(
                KIND,
                "",
                {"node": node_record(sight, graph.catalogue, TIMES, now), "now": TIMES.timestamp(now)},
            )
            wanted = None
            if about.value("enabled"):
                wanted = collect_policy(
                    *map(about.value, ("every", "averagesOver", "percentilesOver", "memory"))
                )
            plan = _plan(name, existing, wanted)
        except CelError as error:
            plan = CollectionPlan(name, {}, {}, str(error))
        self.told(graph, plan)
        return plan

    async def reconcile(self, cluster: Cluster, name: str) -> bool:
        """Write what differs, take away the object of a node that is gone; whether anything was written.

        Raises KubeError.
        """
        plan = self.decide(name)
        if plan is None:
            return self.known(name) is not None and await remove_after_node(
                cluster, resources.NODE_METRICS, name
            )
        return await write_spec(cluster, resources.NODE_METRICS, name, plan.spec, plan.patch)


def _plan(name: str, existing: Object | None, wanted: Mapping[str, Any] | None) -> CollectionPlan:
    if wanted is None:
        return CollectionPlan(name, {}, {})
    spec = {_POLICY: wanted}
    if existing is None:
        return CollectionPlan(name, spec, None)
    before = existing.get("spec") or {}
    return CollectionPlan(name, spec, difference({_POLICY: before.get(_POLICY) or {}}, spec))


def collect_policy(
    every: Duration, averages_over: Duration, percentiles_over: list[Duration], memory: str
) -> dict[str, Any]:
    """The collect policy of a NodeMetric; seconds are whole, and at least one."""
    return {
        "aggregateDurationSeconds": max(averages_over.ns // NANOSECONDS, 1),
        "reportIntervalSeconds": max(every.ns // NANOSECONDS, 1),
        "nodeAggregatePolicy": {
            "durations": [whole_seconds_text(max(one.ns, NANOSECONDS)) for one in percentiles_over]
        },
        "nodeMemoryCollectPolicy": memory,
    }
