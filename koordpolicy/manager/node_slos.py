"""The NodeSLO objects of a real cluster: a copy of them, a queue of nodes, and what is told of plans."""

import asyncio
from typing import Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.manager.controllers.node_slo import NodeSLOController, SLOPlan
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching
from koordpolicy.runtime.workqueue import WorkQueue

TARGET: Final = "NodeSLO"
"""Under what name troubles of nodes are told."""


class NodeSLOs:
    """Every replica looks at the objects; the leader writes them."""

    def __init__(self, component: RunningComponent, objects: ClusterObjects, resync: float) -> None:
        """`resync` is in seconds: how often each node is looked at, though nothing happened to it."""
        self._component = component
        self._objects = objects
        self._resync_every = resync
        self.queue = WorkQueue(
            "node_slos", component.process.metrics, component.backoff(initial=0.5, longest=60.0)
        )
        self._mirror = Mirror(handlers=[self._slo_changed])
        self.watching = Watching(
            component.cluster, resources.NODE_SLOS, self._mirror, component.watch_backoff()
        )
        self.controller = NodeSLOController(
            component.live.graph_for, objects, self._mirror.get, now_ns, self._planned
        )
        self._leading = False

    async def lead(self) -> None:
        """Keep the objects as policies want them, until cancelled."""
        await self.watching.settled.wait()
        self._leading = True
        try:
            async with Tasks() as tasks:
                tasks.start("resync", self._resync())
                await self.queue.run(self._reconcile, workers=2)
        finally:
            self._leading = False

    def all_nodes(self) -> None:
        """Every node may be another matter now."""
        if self._leading:
            for name in tuple(self._objects.nodes):
                self.queue.add(name)

    def node_changed(self, change: ObjectChange) -> None:
        """A node is another: look where that can matter."""
        if self._leading and _relevant(change.old) != _relevant(change.new):
            self.queue.add(change.key[1])

    def _slo_changed(self, change: ObjectChange) -> None:
        if self._leading:
            self.queue.add(change.key[1])

    async def _reconcile(self, node: str) -> bool:
        return await self.controller.reconcile(self._component.cluster, node)

    async def _resync(self) -> None:
        """Look at every node now and then, spread over the period, and at objects whose nodes are gone."""
        while True:
            names = sorted({*self._objects.nodes, *(name for _, name in self._mirror.objects)})
            step = self._resync_every / max(len(names), 1)
            for at, name in enumerate(names):
                self.queue.add_after(name, at * step)
            await asyncio.sleep(self._resync_every)

    def _planned(self, graph: RuleGraph, plan: SLOPlan) -> None:
        counts = self._component.counts
        counts.add(TARGET, self._component.revision_of(graph.digest), failed=bool(plan.problems))
        for problem in plan.problems:
            self._component.troubles.add(TARGET, graph.digest, problem, example=f"node {plan.node}")


def _relevant(node: Object | None) -> object:
    """What of a node strategies may depend on and no heartbeat changes."""
    if node is None:
        return None
    metadata, status = node.get("metadata") or {}, node.get("status") or {}
    return [metadata.get("labels"), metadata.get("annotations"), status.get("allocatable")]
