"""The NodeMetric objects of a real cluster: when nodes are looked at, and what is told of plans."""

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.mirror import Mirror
from koordpolicy.manager.controllers.node_metric import KIND, CollectionPlan, NodeMetricController
from koordpolicy.manager.node_objects import NodeObjects
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import RunningComponent


class NodeMetrics:
    """Every replica has a copy of the objects, `known`; the leader writes what agents are to measure."""

    def __init__(
        self, component: RunningComponent, objects: ClusterObjects, known: Mirror, resync: float
    ) -> None:
        """`resync` is in seconds: how often each node is looked at, though nothing happened to it."""
        self._component = component
        self._known = known
        self.controller = NodeMetricController(
            component.live.graph_for, objects, known.get, now_ns, self._planned
        )
        self.nodes = NodeObjects(component, objects, "node_metrics", self._reconcile, resync)
        known.follow(self.nodes.object_changed)

    async def lead(self) -> None:
        """Keep the objects as policies want them, until cancelled. The copy has to be there."""
        await self.nodes.lead(self._known)

    async def _reconcile(self, node: str) -> bool:
        return await self.controller.reconcile(self._component.cluster, node)

    def _planned(self, graph: RuleGraph, plan: CollectionPlan) -> None:
        counts = self._component.counts
        counts.add(KIND, self._component.revision_of(graph.digest), failed=bool(plan.problem))
        if plan.problem:
            self._component.troubles.add(KIND, graph.digest, plan.problem, example=f"node {plan.node}")
