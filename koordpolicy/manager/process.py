"""The manager as a process: webhooks on every replica, the controllers on the one that leads."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.node_overrides import PREFIX as OVERRIDES
from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.watch import ClusterWatch
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.mirror import ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource
from koordpolicy.manager.agent_policies import AgentPolicies
from koordpolicy.manager.agent_sums import AgentSums
from koordpolicy.manager.controllers.controller import OvercommitController
from koordpolicy.manager.controllers.node_change import NodeChange
from koordpolicy.manager.controllers.overcommit import KIND, Calculation, PublishAction, roots_of
from koordpolicy.manager.controllers.priority_classes import PriorityClasses
from koordpolicy.manager.node_metrics import NodeMetrics
from koordpolicy.manager.node_slos import NodeSLOs
from koordpolicy.manager.profile_pods import ProfilePods
from koordpolicy.manager.quota_profiles import QuotaProfiles
from koordpolicy.manager.recommendations import Recommendations
from koordpolicy.manager.serving import ServedWebhooks, WebhookOptions
from koordpolicy.manager.webhooks.preparing import prepare_admission
from koordpolicy.model.facts import Record
from koordpolicy.model.reading import mapping, text
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.unreadable import readable
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.component import (
    NAMESPACE,
    ComponentOptions,
    RunningComponent,
    Settings,
    running_component,
)
from koordpolicy.runtime.policies.live import ActiveRevision
from koordpolicy.runtime.process import Process, Tasks
from koordpolicy.runtime.reports.object_status import StatusWriter
from koordpolicy.runtime.reports.places import FailingRule, failing_rule
from koordpolicy.runtime.workqueue import WorkQueue

NAME: Final = "manager"
LEASE: Final = "koordpolicy-manager"
WATCHED: Final = frozenset(
    {
        resources.NODES,
        resources.PODS,
        resources.NODE_METRICS,
        resources.NODE_RESOURCE_TOPOLOGIES,
        resources.DEVICES,
    }
)
"""What nodes are to offer depends on."""
_LAST: Final = frozenset({resources.NODE_METRICS})
"""What is asked for once all else is there: a node is decided about as soon as its own report is known."""
_AMOUNTS: Final = ("cpu", "memory")
_TICK: Final = 0.5
"""Seconds between looks for nodes whose turn has come."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How the controllers work: nodes at a time, seconds between looks at a node that nothing happened to,
    seconds that changes of pods are gathered before their node is looked at, seconds between looks at its NodeSLO and NodeMetric.
    """

    workers: int = 4
    resync: float = 60.0
    gather: float = 1.0
    slo_resync: float = 300.0


async def run_manager(
    process: Process,
    settings: Settings,
    pace: Pace = Pace(),
    webhooks: WebhookOptions | None = None,
) -> None:
    """Run until the process is told to stop. Raises `CannotStart`."""
    prepare = None if webhooks is None else lambda graph: prepare_admission(graph, now_ns())
    options = ComponentOptions(leads_rollouts=True, prepare=prepare)
    async with running_component(process, settings, options) as component:
        manager = Manager(component, pace, webhooks, settings.namespace)
        process.status.add(manager.status)
        async with Tasks() as tasks:
            manager.start(tasks)
            if manager.webhooks is None:
                await process.stopped()
            else:
                await manager.webhooks.run(tasks)


class Manager:
    """The controllers and what they look at. Every replica looks; the leader writes."""

    def __init__(
        self,
        component: RunningComponent,
        pace: Pace,
        webhooks: WebhookOptions | None = None,
        namespace: str = NAMESPACE,
    ) -> None:
        self._component = component
        self.agent_policies = AgentPolicies(component, namespace)
        self._pace = pace
        metrics = component.process.metrics
        self.queue = WorkQueue("nodes", metrics, component.backoff(initial=0.5, longest=60.0))
        self.objects = ClusterObjects()
        self.controller = OvercommitController(
            component.live.graph_for,
            self.objects,
            now_ns,
            self._decided,
            self._changes,
            lambda: int(monotonic() * NANOSECONDS),
        )
        handlers = EventHandlers(
            self.objects, unreadable=component.unreadable, wanted=WATCHED, after=self._changed_on
        )
        self._watch = ClusterWatch(component, handlers, last=_LAST)
        self.webhooks = None if webhooks is None else ServedWebhooks(component, webhooks, handlers.mirrors)
        self.node_slos = NodeSLOs(component, self.objects, pace.slo_resync)
        self.node_metrics = NodeMetrics(
            component, self.objects, handlers.mirrors[resources.NODE_METRICS], pace.slo_resync
        )
        self.agent_sums = AgentSums(
            component,
            self.objects,
            handlers.mirrors[resources.NODE_METRICS],
            lambda: self.agent_policies.names,
        )
        self.quota_profiles = QuotaProfiles(component, self.objects)
        self.profile_pods = ProfilePods(component, handlers.mirrors)

        self.priority_classes = PriorityClasses(
            component.cluster, lambda: component.live.graph, component.backoff(initial=0.5, longest=60.0)
        )
        self.recommendations = Recommendations(component, self.objects)
        self._leading = False
        self._all_reports = False
        self._looked: dict[str, float] = {}
        """When each node was looked at last, the longest ago first; those that wait to be looked at are not there."""

    def start(self, tasks: Tasks) -> None:
        """Look, and stand for election."""
        readiness = self._component.process.readiness
        readiness.wait_for("cluster", "the cluster's objects have not been read yet")
        self._watch.start(tasks)
        tasks.start("watch nodeslos", self.node_slos.watching.run())
        self.quota_profiles.start(tasks)
        self.profile_pods.start(tasks)

        tasks.start("watch recommendations", self.recommendations.watching.run())
        tasks.start("lead", self._component.leadership.run(LEASE, self._lead))

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        return {
            "nodes": len(self.objects.nodes),
            "waiting": len(self.queue),
            "priorityClassesWritten": self.priority_classes.written,
            "priorityClassTroubles": self.priority_classes.troubles,
            **self.recommendations.status(),
            **self.agent_policies.status(),
            **self.agent_sums.status(),
        }

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
            if self.webhooks is not None:
                self.webhooks.lead(tasks)
            # A node is decided about as soon as its own report is known, while those of others come in.
            await self._watch.synced(besides=_LAST)
            self._leading = True
            self.controller.begin()
            end = component.live.subscribe(self._changed)
            try:
                tasks.start("resync", self._resync())
                tasks.start("all else", self._lead_all_else(tasks))
                await self.queue.run(self._reconcile, self._pace.workers)
            finally:
                self._leading = False
                end()

    async def _lead_all_else(self, tasks: Tasks) -> None:
        """Once all reports are known: nodes that have none, and what other controllers keep."""
        await self._watch.synced()
        self._all_reports = True
        for name in self.objects.nodes:
            if not self.objects.has_reported(name):
                self.queue.add(name)
        tasks.start("node slos", self.node_slos.lead())
        tasks.start("node metrics", self.node_metrics.lead())
        tasks.start("quota profiles", self.quota_profiles.lead())
        tasks.start("pods and profiles", self.profile_pods.lead())
        tasks.start("priority classes", self.priority_classes.run())
        tasks.start("agent policies", self.agent_policies.lead())
        tasks.start("agent sums", self.agent_sums.lead())
        tasks.start("recommendations", self.recommendations.lead())

    def _is_known(self, node: str) -> bool:
        """Whether all is known that decisions on a node depend on: a report that is still to come is not none."""
        return self._all_reports or self.objects.has_reported(node)

    async def _reconcile(self, node: str) -> bool:
        if not self._is_known(node):
            return False  # it comes again with its report, or once all reports are known
        self._looked.pop(node, None)
        decided = await self.controller.reconcile(self._component.cluster, node, self._changed_by_others)
        if decided is None:
            self.queue.forget(node)
            return False
        self._looked[node] = monotonic()
        if decided.turns_in is not None:
            self.queue.add_after(node, decided.turns_in)
        return bool(decided.writes)

    def _changed(self, _: ActiveRevision) -> None:
        """Another revision decides: every node may be another matter now."""
        self._all_nodes()

    def _all_nodes(self) -> None:
        for name in tuple(self.objects.nodes):
            if self._is_known(name):
                self.queue.add(name)
        self.node_slos.nodes.all_nodes()
        self.node_metrics.nodes.all_nodes()
        self.quota_profiles.all_profiles()
        self.profile_pods.again()
        self.priority_classes.again()

    async def _resync(self) -> None:
        """Look at nodes that were not looked at for so long: what policy says may depend on the time.

        At first all of them are looked at, spread over the period.
        """
        period = self._pace.resync
        names = list(self.objects.nodes)
        began, step = monotonic() - period, period / max(len(names), 1)
        self._looked = {name: began + at * step for at, name in enumerate(names)}
        while True:
            now = monotonic()
            for name, looked in tuple(self._looked.items()):
                if looked > now - period:
                    break  # the others were looked at later still
                del self._looked[name]
                self.queue.add(name)
            await asyncio.sleep(min(_TICK, period / 4))

    def _changed_by_others(self, node: str) -> None:
        """Somebody else has changed a node while it was written."""
        for queue in (self.queue, self.node_slos.nodes.queue, self.node_metrics.nodes.queue):
            queue.add(node)

    # --- what happened ----------------------------------------------------------------------------

    def _changed_on(self, resource: Resource, change: ObjectChange) -> None:
        """Something about a node is another: look at it, at one with other pods a little later."""
        if resource is resources.NODE_METRICS:
            self.recommendations.reported(change)
        if resource is resources.PODS:
            self.recommendations.pod_changed(change)
        if not self._leading:
            return
        if resource is resources.NODES:
            if change.new is not None and self.controller.is_own(change.key[1], _version_of(change.new)):
                return
            self.node_slos.nodes.node_changed(change)
            self.node_metrics.nodes.node_changed(change)
        if resource is not resources.PODS:
            self.queue.add(change.key[1])
            return
        for obj in (change.old, change.new):
            node = None if obj is None else readable(_node_of, obj)
            if isinstance(node, str) and node:
                self.queue.add_after(node, self._pace.gather)

    def _decided(self, graph: RuleGraph, record: Record, calculations: Sequence[Calculation]) -> None:
        """Count the decisions, and write some of them down."""
        counts, log = self._component.counts, self._component.log
        revision = self._component.revision_of(graph.digest)
        for words in _problems(record):
            self._component.troubles.add(KIND, graph.digest, words, example=f"node {record.get('name', '')}")
        for one in calculations:
            failed = one.outcome is PublishAction.KEEP and bool(one.reason)
            if one.failed:
                rule = self._failing(graph, record, one.resource)
                self._component.troubles.add(
                    f"{KIND}/{one.resource}",
                    graph.digest,
                    one.reason,
                    rule=rule.field,
                    place=rule.place,
                    example=f"node {record.get('name', '')}",
                    facts=lambda: {name: value for name, value in record.items() if name != "pods"},
                    cause=one.cause,
                )
            for amount in _AMOUNTS:
                name = f"{KIND}/{one.resource}.{amount}"
                counts.add(name, revision, failed=failed)
                if log is not None and log.wants(name) and name in graph:
                    cluster = self.controller.cluster_of(graph)
                    answer = graph.ask(name, **roots_of(graph, one.resource, record, now_ns(), cluster))
                    log.record(answer, {"node": str(record.get("name", ""))}, revision)

    def _failing(self, graph: RuleGraph, record: Record, resource: str) -> FailingRule:
        roots = roots_of(graph, resource, record, now_ns(), self.controller.cluster_of(graph))
        zones: Any = record["zones"]
        if zones:
            roots["zone"] = zones[0]
        return failing_rule(graph, f"{KIND}/{resource}", roots)

    def _changes(self, graph: RuleGraph, node: str, changes: Mapping[str, NodeChange]) -> None:
        """Count what other kinds decided, and tell of what went wrong."""
        revision = self._component.revision_of(graph.digest)
        for kind, change in changes.items():
            self._component.counts.add(kind, revision, failed=bool(change.problems))
            for problem in change.problems:
                self._component.troubles.add(kind, graph.digest, problem, example=f"node {node}")


def _problems(record: Record) -> Sequence[str]:
    """What the node says of itself and nobody can follow."""
    found: Any = record.get(f"{OVERRIDES}.problems", ())
    return tuple(found)


def _node_of(pod: Object) -> str:
    """The node that a pod is bound to; empty for none. Raises ObjectError."""
    return text(mapping(pod, "spec"), "nodeName", "spec")


def _version_of(node: Object) -> str:
    return str((node.get("metadata") or {}).get("resourceVersion", ""))
