"""The NodeSLO objects of a real cluster: a copy of them, when nodes are looked at, and what is told of plans."""

from typing import Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.manager.controllers.node_slo import NodeSLOController, SLOPlan
from koordpolicy.manager.node_objects import NodeObjects
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.watching import Watching

TARGET: Final = "NodeSLO"
"""Under what name troubles of nodes are told."""


class NodeSLOs:
    """Every replica looks at the objects; the leader writes them."""

    def __init__(self, component: RunningComponent, objects: ClusterObjects, resync: float) -> None:
        """`resync` is in seconds: how often each node is looked at, though nothing happened to it."""
        self._component = component
        self._mirror = Mirror(handlers=[self._slo_changed])
        self.watching = Watching(
            component.cluster, resources.NODE_SLOS, self._mirror, component.watch_backoff()
        )
        self.controller = NodeSLOController(
            component.live.graph_for, objects, self._mirror.get, now_ns, self._planned
        )
        self.nodes = NodeObjects(component, objects, "node_slos", self._reconcile, resync)

    async def lead(self) -> None:
        """Keep the objects as policies want them, until cancelled."""
        await self.watching.settled.wait()
        await self.nodes.lead(self._mirror)

    def _slo_changed(self, change: ObjectChange) -> None:
        self.nodes.object_changed(change)

    async def _reconcile(self, node: str) -> bool:
        return await self.controller.reconcile(self._component.cluster, node)

    def _planned(self, graph: RuleGraph, plan: SLOPlan) -> None:
        counts = self._component.counts
        counts.add(TARGET, self._component.revision_of(graph.digest), failed=bool(plan.problems))
        for problem in plan.problems:
            self._component.troubles.add(TARGET, graph.digest, problem, example=f"node {plan.node}")
