"""The manager as a process: the controllers on a real cluster, on the replica that leads."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.mirror import Change, Handler, Index, Mirror, key_of
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource
from koordpolicy.manager.controllers.controller import OvercommitController
from koordpolicy.manager.controllers.overcommit import KIND, Calculation, PublishAction, roots_of
from koordpolicy.manager.controllers.view import BY_NODE, ClusterView, node_of_pod
from koordpolicy.model.facts import Record
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import ComponentOptions, RunningComponent, Settings, running_component
from koordpolicy.runtime.live import ActiveRevision
from koordpolicy.runtime.object_status import StatusWriter
from koordpolicy.runtime.process import Process, Tasks
from koordpolicy.runtime.unreadable import status_of
from koordpolicy.runtime.watching import Watching
from koordpolicy.runtime.workqueue import WorkQueue

NAME: Final = "manager"
LEASE: Final = "koordpolicy-manager"
_RUNNING_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
_AMOUNTS: Final = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Pace:
    """How the controllers work: nodes at a time, seconds between looks at a node that nothing happened to,
    seconds that changes of pods are gathered before their node is looked at.
    """

    workers: int = 4
    resync: float = 60.0
    gather: float = 1.0


async def run_manager(process: Process, settings: Settings, pace: Pace = Pace()) -> None:
    """Run until the process is told to stop. Raises `CannotStart`."""
    async with running_component(process, settings, ComponentOptions(leads_rollouts=True)) as component:
        manager = Manager(component, pace)
        process.status.add(manager.status)
        async with Tasks() as tasks:
            manager.start(tasks)
            await process.stopped()


class Manager:
    """The controllers and what they look at. Every replica looks; the leader writes."""

    def __init__(self, component: RunningComponent, pace: Pace) -> None:
        self._component = component
        self._pace = pace
        metrics = component.process.metrics
        self.queue = WorkQueue("nodes", metrics, component.backoff(initial=0.5, longest=60.0))
        self.view = ClusterView(
            nodes=self._mirror(resources.NODES, self._named),
            pods=self._mirror(resources.PODS, self._of_pod, {BY_NODE: node_of_pod}),
            metrics=self._mirror(resources.NODE_METRICS, self._named),
            topologies=self._mirror(resources.NODE_RESOURCE_TOPOLOGIES, self._named),
            unreadable=component.unreadable,
        )
        self.controller = OvercommitController(component.live.graph_for, self.view, now_ns, self._heard)
        self._watching = tuple(self._watches())
        self._leading = False

    def _mirror(
        self, resource: Resource, handler: Handler, indexes: Mapping[str, Index] | None = None
    ) -> Mirror:
        """A copy of a resource whose changes reach a handler, and what cannot be read the notes."""
        unreadable = self._component.unreadable

        def found(obj: Object, why: Unreadable) -> None:
            key = readable(key_of, obj)
            unreadable.found(resource, ("", "") if isinstance(key, Unreadable) else key, obj, why)

        def gone(change: Change) -> None:
            if change.new is None:
                unreadable.gone(resource, change.key)

        return Mirror(indexes=indexes, handlers=[gone, handler], on_unreadable=found)

    def _watches(self) -> Sequence[Watching]:
        cluster, view = self._component.cluster, self.view
        backoff = self._component.backoff(longest=15.0)
        return (
            Watching(cluster, resources.NODES, view.nodes, backoff),
            Watching(cluster, resources.PODS, view.pods, backoff, field_selector=_RUNNING_PODS),
            Watching(cluster, resources.NODE_METRICS, view.metrics, backoff),
            Watching(cluster, resources.NODE_RESOURCE_TOPOLOGIES, view.topologies, backoff),
        )

    def start(self, tasks: Tasks) -> None:
        """Look, and stand for election."""
        readiness = self._component.process.readiness
        readiness.wait_for("cluster", "the cluster's objects have not been read yet")
        for watching in self._watching:
            tasks.start(f"watch {watching.resource}", watching.run())
        tasks.start("ready", self._settled())
        tasks.start("lead", self._component.leadership.run(LEASE, self._lead))

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        return {
            "leader": self._component.leadership.status(),
            "nodes": len(self.view.nodes.objects),
            "waiting": len(self.queue),
            **status_of(self._component.unreadable),
            **self._component.troubles.status(),
        }

    async def _settled(self) -> None:
        for watching in self._watching:
            await watching.settled.wait()
        self._component.process.readiness.reached("cluster")

    # --- what only the leader does ----------------------------------------------------------------

    async def _lead(self) -> None:
        component = self._component
        async with Tasks() as tasks:
            # Before any revision is active: that the very first one is bad has to be told, too.
            if component.source is not None:
                writer = StatusWriter(
                    component.cluster,
                    component.source,
                    component.live,
                    component.process.metrics,
                    component.backoff(),
                    now=now_ns,
                )
                tasks.start("status", writer.run())
            await component.live.ready.wait()
            await self._settled()
            self._leading = True
            end = component.live.subscribe(self._changed)
            try:
                tasks.start("resync", self._resync())
                await self.queue.run(self._reconcile, self._pace.workers)
            finally:
                self._leading = False
                end()

    async def _reconcile(self, node: str) -> bool:
        decided = await self.controller.reconcile(self._component.cluster, node)
        if decided is None:
            self.queue.forget(node)
            return False
        return bool(decided.writes)

    def _changed(self, _: ActiveRevision) -> None:
        """Another revision decides: every node may be another matter now."""
        self._all_nodes()

    def _all_nodes(self) -> None:
        for _, name in tuple(self.view.nodes.objects):
            self.queue.add(name)

    async def _resync(self) -> None:
        """Look at every node now and then: what policy says may depend on the time. Spread over the period."""
        while True:
            names = [name for _, name in self.view.nodes.objects]
            step = self._pace.resync / max(len(names), 1)
            for at, name in enumerate(names):
                self.queue.add_after(name, at * step)
            await asyncio.sleep(self._pace.resync)

    # --- what happened ----------------------------------------------------------------------------

    def _named(self, change: Change) -> None:
        if self._leading:
            self.queue.add(change.key[1])

    def _of_pod(self, change: Change) -> None:
        if not self._leading:
            return
        for obj in (change.old, change.new):
            found = () if obj is None else readable(node_of_pod, obj)
            for node in () if isinstance(found, Unreadable) else found:
                self.queue.add_after(node, self._pace.gather)

    def _heard(self, graph: RuleGraph, record: Record, calculations: Sequence[Calculation]) -> None:
        """Count the decisions, and write some of them down."""
        counts, log = self._component.counts, self._component.log
        revision = self._component.revision_of(graph.digest)
        for one in calculations:
            failed = one.outcome is PublishAction.KEEP and bool(one.reason)
            if one.failed:
                self._component.troubles.add(
                    f"{KIND}/{one.resource}",
                    graph.digest,
                    one.reason,
                    example=f"node {record.get('name', '')}",
                    facts=lambda: {name: value for name, value in record.items() if name != "pods"},
                    cause=one.cause,
                )
            for amount in _AMOUNTS:
                name = f"{KIND}/{one.resource}.{amount}"
                counts.add(name, revision, failed=failed)
                if log is not None and log.wants(name) and name in graph:
                    answer = graph.ask(name, **roots_of(graph, one.resource, record, now_ns()))
                    log.record(answer, {"node": str(record.get("name", ""))}, revision)
