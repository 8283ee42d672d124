"""The embedded cluster of a simulation: the store with its webhooks, and who listens to it.

Components meet here as their processes do: each write goes through admission into the store, and every
listener hears of it from its watch. NodeMetrics are the exception. They are handed to the scheduler and
the manager as values, since parsing thousands of objects that nobody else reads would cost most of the time.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from koordpolicy.algorithms.work import finished
from koordpolicy.cluster.column_reports import ColumnReports
from koordpolicy.cluster.event_handlers import EVERY_RESOURCE, ClusterListener, EventHandlers
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.admission import AdmissionChain, AdmissionRequest, Operation
from koordpolicy.kube.errors import AlreadyExists, KubeError, Rejected
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.memory.store import Store, finish
from koordpolicy.kube.memory.watch import WatchQueue
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.port import MergePatch, Object, StrategicPatch
from koordpolicy.kube.snapshot import KEPT, Snapshot
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.manager.controllers.controller import OvercommitController, PlannedWrite, Reconciliation
from koordpolicy.manager.controllers.node_plan import NodePlan
from koordpolicy.manager.controllers.overcommit import Calculation
from koordpolicy.manager.webhooks.hooks import chain
from koordpolicy.manager.webhooks.mutation import Mutation, PodContext, roots_of
from koordpolicy.manager.webhooks.pods import namespace_of
from koordpolicy.manager.webhooks.rules import Violation
from koordpolicy.manager.webhooks.webhook import QuotaWrites, WebhookContext
from koordpolicy.model.facts import Record
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod, PodKey, read_pod
from koordpolicy.model.protocol import (
    CONDITION_READY,
    ORIGIN_EXTENDED_ALLOCATABLE,
    PHASE_RUNNING,
    PHASE_SUCCEEDED,
    TAINT_UNREACHABLE,
)
from koordpolicy.scheduler.binder import WriteOutcome, WritePlan, apply
from koordpolicy.scheduler.role import ALONE, Role
from koordpolicy.simulator.chance import Chance
from koordpolicy.simulator.clock import Agenda
from koordpolicy.simulator.events import CollectedEvents, SimulatedReports
from koordpolicy.simulator.failures import SimulatedFailures
from koordpolicy.simulator.noted_objects import NotedObjects, together
from koordpolicy.simulator.schedulers import Schedulers, SimulatedListeners
from koordpolicy.simulator.volumes import VolumeController
from koordpolicy.simulator.workload import Json, Workload

_BACKLOG = 1_000_000
_HISTORY = 1000
_IMAGE = "simulated"
_READING = frozenset({"get", "list", "watch"})
_DEFAULT_SCHEDULER = "default-scheduler"
_FROM_LIVE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences")
"""Metadata of objects that were read from a live cluster, and mean nothing in another."""
_OF_CLASS = ("priority", "preemptionPolicy")
"""What an API server writes into the specs of pods, by the PriorityClasses that it has."""


@dataclass(slots=True)
class BrokenRule:
    """How often an admission rule was broken, on which pod first, and what it said of that."""

    example: str
    message: str
    times: int = 0


class SimulatedCluster:
    """Store, webhooks, schedulers and overcommit controller, wired together on virtual time.

    Without `colocation` profiles are not asked and nothing is offered: the same cluster without this product
    but for its scheduler. With `explained` decisions say why each node was taken, which takes longer. Raises KubeError for objects of the workload that a cluster would not take.
    """

    def __init__(
        self,
        graph: RuleGraph,
        workload: Workload,
        agenda: Agenda,
        chance: Chance,
        *,
        colocation: bool,
        role: Role = ALONE,
        explained: bool = True,
    ) -> None:
        self.graph = graph
        self.colocation = colocation
        self._agenda = agenda
        self.objects = NotedObjects()
        self.drawn: dict[str, int] = {}
        """Pods that each profile was applied to."""
        self.translated: dict[str, int] = {}
        """Pods that now request the resources of each band."""
        self.violations: Sequence[Violation] = ()
        """The admission rules that the latest pod that was submitted breaks."""
        self._left_out: Sequence[tuple[str, str]] = ()
        self.broken: dict[tuple[str, str, str], BrokenRule] = {}
        """The admission rules that were broken, by rule, operation and enforcement."""
        self.failures = SimulatedFailures(graph)
        self._store = Store(lambda: agenda.seconds, backlog=_BACKLOG, history=_HISTORY)
        self.events = CollectedEvents(lambda: agenda.now)
        reports = SimulatedReports(graph, self.events, lambda: agenda.now)
        self.schedulers = Schedulers(
            graph, lambda: agenda.now, chance, role, reports, self.failures, explained=explained
        )
        self.refusal: Callable[[], KubeError | None] = lambda: None
        """Asked at each write of a component about a pod or a node: what the API server says instead of taking it."""
        self._client = MemoryCluster(self._store, before_request=self._requested)
        self.overcommit = OvercommitController(
            lambda node, labels: graph, self.objects, lambda: agenda.now, self._offered
        )
        self._listener = SimulatedListeners(self.objects, self.schedulers)
        self._followers: list[Callable[[resources.Resource, ObjectChange], None]] = []
        handlers = self._handlers = EventHandlers(
            self._listener,
            unreadable=UnreadableObjects(lambda resource, obj, why: None),
            after=self._changed,
        )
        self._watches: list[tuple[WatchQueue, Mirror]] = []
        self._awake: set[WatchQueue] = set()
        """The watches that something is to be taken from: most have nothing, and each write is delivered."""
        for resource, mirror in handlers.mirrors.items():
            self.mirror(resource, mirror)
        self._admission = chain(
            WebhookContext(
                lambda: graph,
                self._store,
                lambda: agenda.now,
                lambda: 100.0 * chance.random(),
                self._observe,
                quota_writes=QuotaWrites(self._client, together=False),
            )
        )
        self._unwritten: dict[str, Collection[str]] = {}
        """The resources of nodes of which published amounts do not stand in the store yet."""
        self.volumes = VolumeController(self._store, self.objects.state.volumes, self.deliver)
        self._prepare(workload)

    # --- what there is from the beginning ---------------------------------------------------------

    def _prepare(self, workload: Workload) -> None:
        self._create_namespaces(workload)
        for obj in workload.objects:
            self._create_once(_resource(obj), _plain(obj))
        for band in self.graph.classes.bands.values():
            name = band.get("priorityClass.name")
            if name:
                self._create_once(
                    resources.PRIORITY_CLASSES,
                    {
                        "metadata": {"name": name},
                        "value": band.get("priorityClass.value", 0),
                        "preemptionPolicy": band.get(
                            "priorityClass.preemptionPolicy", "PreemptLowerPriority"
                        ),
                    },
                )
        for node in workload.nodes:
            self._store.create(resources.NODES, _plain(node))
        self.volumes.prepare()
        self.deliver()
        self.volumes.settle()
        self.deliver()
        admission = self._admission
        self._store.use_admission(
            admission if self.colocation else AdmissionChain(validating=admission.validating)
        )

    def _create_namespaces(self, workload: Workload) -> None:
        said = [obj for obj in workload.objects if obj["kind"] == resources.NAMESPACES.kind]
        for obj in said:
            self._create_once(resources.NAMESPACES, _plain(obj))
        others = {_namespace(arrival.pod) for arrival in workload.arrivals}
        others |= {_namespace(obj) for obj in workload.objects if _resource(obj).namespaced}
        for name in sorted(others):
            self._create_once(resources.NAMESPACES, {"metadata": {"name": name}})

    def _create_once(self, resource: resources.Resource, obj: Object) -> None:
        with suppress(AlreadyExists):
            self._store.create(resource, obj, namespace=_namespace(obj) if resource.namespaced else None)

    # --- what happens to pods ---------------------------------------------------------------------

    def submit(self, pod: Json) -> Pod:
        """Create a pod. Raises KubeError when the cluster refuses it."""
        submitted, namespace = self._submitted(pod), _namespace(pod)
        self.violations = self._left_out = ()
        refusal: KubeError | None = None
        try:
            stored = self._store.create(resources.PODS, submitted, namespace=namespace)
        except KubeError as error:
            refusal = error
            raise
        finally:
            self.failures.admitted(
                f"{namespace}/{pod['metadata'].get('name', '')}",
                refusal,
                self._left_out,
                lambda: roots_of(
                    submitted,
                    self.graph,
                    PodContext(namespace_of(self._store, namespace), lambda name: None, self._agenda.now),
                ),
            )
        if self.volumes.ephemeral(stored):
            self.deliver()
            self.volumes.settle()
        self.deliver()
        return self._heard(stored)

    async def _requested(self, verb: str, resource: resources.Resource) -> None:
        if verb not in _READING and resource in (resources.PODS, resources.NODES):
            refused = self.refusal()
            if refused is not None:
                raise refused

    def carry_out(self, planned: WritePlan) -> WriteOutcome:
        """Write what the scheduler wants written; what came of it."""
        outcome = finish(apply(self._client, planned, sleep=self._wait))
        self.deliver()
        return outcome

    async def _wait(self, _seconds: float) -> None:
        """A pause of the binder, in which the cluster's controllers bind claims: no virtual time goes by."""
        self.deliver()
        self.volumes.settle()

    def start(self, pod: PodKey) -> Pod:
        """A pod's kubelet starts it; the pod as it then is."""
        namespace, name = pod
        running = self._store.patch(resources.PODS, name, _STARTED, namespace=namespace, subresource="status")
        self.deliver()
        return self._heard(running)

    def _heard(self, stored: Object) -> Pod:
        """A pod that was just delivered, which need not be read twice. Raises ObjectError."""
        metadata = stored["metadata"]
        known = self.objects.pods.get((metadata["namespace"], metadata["name"]))
        return known if known is not None and known.raw is stored else read_pod(stored)

    @property
    def client(self) -> MemoryCluster:
        """How components write into this cluster; `deliver` lets all hear of it."""
        return self._client

    def delete(self, pod: PodKey) -> bool:
        """A pod is over, and goes; whether it does. One that admission keeps takes nothing any more."""
        namespace, name = pod
        try:
            self._store.delete(resources.PODS, name, namespace=namespace, grace_seconds=0)
        except Rejected:
            self._store.patch(resources.PODS, name, _OVER, namespace=namespace, subresource="status")
            return False
        finally:
            self.deliver()
        return True

    # --- what is known of nodes -------------------------------------------------------------------

    def hear(self, metric: NodeMetric) -> None:
        """A node's report reaches the manager and the scheduler."""
        self._listener.set_metric(metric)

    def hear_reports(self, reports: ColumnReports) -> None:
        """The reports of many nodes reach the schedulers."""
        self._listener.set_reports(reports)

    def settle(self, name: str) -> Reconciliation | None:
        """Let the manager decide what a node offers, and write what differs; None where there is no such node, or it may not write now."""
        decided = self.overcommit.decide(name)
        if decided is None:
            return None
        if decided.writes:
            if self.refusal() is not None:
                return None
            published = self._left_out_of(name)
            self._unwritten.pop(name, None)
            for write in (*published, *decided.writes):
                self._store.patch(write.resource, write.name, write.patch, subresource=write.subresource)
            self.deliver()
        self.overcommit.done(decided)
        return decided

    def publish(self, node: Node, offered: Collection[str]) -> bool:
        """What a node offers (of these resources) is written, if it may be: who listens gets the node as it then is, the store before
        it gets anything else of it.

        Amounts change on all nodes every few minutes, and nobody reads them from the store.
        """
        if self.refusal() is not None:
            return False
        self._listener.set_node(node)
        self.objects.forget_changed(node.name)
        self._unwritten[node.name] = offered
        return True

    def _left_out_of(self, name: str) -> Sequence[PlannedWrite]:
        """What was published of a node and does not stand in the store yet."""
        offered, node = self._unwritten.get(name), self.objects.nodes.get(name)
        if offered is None or node is None:
            return ()
        origin = node.annotations.get(ORIGIN_EXTENDED_ALLOCATABLE)
        plan = NodePlan(
            {one: node.allocatable.get(one) for one in offered},
            {} if origin is None else {ORIGIN_EXTENDED_ALLOCATABLE: origin},
        )
        return Reconciliation(name, (), plan).writes

    def say_reachable(self, name: str, *, reachable: bool) -> None:
        """The node lifecycle controller says whether it hears of a node: by its condition, and by taints where it does not."""
        node = self._store.find(resources.NODES, name)
        if node is None:
            return
        kept = [
            one for one in node.get("spec", {}).get("taints") or () if one.get("key") != TAINT_UNREACHABLE
        ]
        taints = [{"key": TAINT_UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        said = kept if reachable else [*kept, *taints]
        self._store.patch(resources.NODES, name, MergePatch({"spec": {"taints": said}}))
        others = [
            one
            for one in node.get("status", {}).get("conditions") or ()
            if one.get("type") != CONDITION_READY
        ]
        ready = {"type": CONDITION_READY, "status": "True" if reachable else "Unknown"}
        status = MergePatch({"status": {"conditions": [*others, ready]}})
        self._store.patch(resources.NODES, name, status, subresource="status")
        self.deliver()

    def picture(self, reports: Mapping[str, Object]) -> Snapshot:
        """All objects as they are now, as `koordpolicy snapshot` would save them; `reports` are the statuses of nodes' metrics."""
        objects: dict[str, list[Object]] = {
            str(resource): [*self._store.list(resource).items]
            for resource in KEPT
            if resource != resources.NODE_METRICS
        }
        objects[str(resources.NODES)] = [self._published(node) for node in objects[str(resources.NODES)]]
        objects[str(resources.NODE_METRICS)] = [
            {"metadata": {"name": name}, "status": status} for name, status in reports.items()
        ]
        return Snapshot(self._agenda.now, objects)

    def _published(self, node: Object) -> Object:
        """A node with what was published of it and does not stand in the store yet."""
        for write in self._left_out_of(node["metadata"]["name"]):
            if write.resource == resources.NODES:
                node = together(node, write.patch.body)
        return node

    # --- how it is heard --------------------------------------------------------------------------

    def deliver(self) -> None:
        """Let every listener hear what was written."""
        awake = self._awake
        for watch, mirror in self._watches if awake else ():
            if watch in awake:
                awake.discard(watch)
                for event in watch.take():
                    mirror.apply(event)

    def follow(self, follower: Callable[[resources.Resource, ObjectChange], None]) -> None:
        """Tell somebody of each change once everybody who listens knows it."""
        self._followers.append(follower)

    def mirror(self, resource: resources.Resource, mirror: Mirror) -> None:
        """Keep one more mirror up to date with all objects that come from now on."""
        watch = self._store.watch(resource)
        watch.wake = partial(self._awake.add, watch)
        self._awake.add(watch)
        self._watches.append((watch, mirror))

    def listen(self, listener: ClusterListener) -> None:
        """Let one more listener know the cluster as it is, and whatever becomes of it but the reports of many nodes."""
        finished(self._handlers.repeat(listener))
        for node in self.objects.nodes.values():  # with what was published of them
            listener.set_node(node)
        self._listener.listeners = (*self._listener.listeners, listener)

    def _changed(self, resource: resources.Resource, change: ObjectChange) -> None:
        for follower in self._followers:
            follower(resource, change)

    def _submitted(self, pod: Json) -> dict[str, Any]:
        """The pod as its owner would submit it here: to our scheduler, without what another cluster added."""
        submitted = _plain(pod)
        submitted.pop("status", None)
        submitted["metadata"]["ownerReferences"] = self._owners(pod)
        spec = submitted["spec"] = dict(submitted.get("spec") or {})
        spec.pop("nodeName", None)
        if pod["metadata"].get("uid"):
            for field in _OF_CLASS:
                spec.pop(field, None)
        if spec.get("schedulerName") in (None, "", _DEFAULT_SCHEDULER):
            spec["schedulerName"] = (
                _DEFAULT_SCHEDULER if _DEFAULT_SCHEDULER in self.schedulers else self.schedulers.default
            )
        spec["containers"] = [
            {**container, "image": container.get("image") or _IMAGE}
            for container in spec.get("containers") or ()
        ]
        return submitted

    def _owners(self, pod: Json) -> list[Json]:
        """The owners of a pod that are here, too."""
        found: list[Json] = []
        for owner in pod["metadata"].get("ownerReferences") or ():
            resource = _RESOURCES.of(owner)
            if resource is not None and resource.namespaced:
                there = self._store.find(resource, owner.get("name", ""), namespace=_namespace(pod))
                if there is not None:
                    found.append({**owner, "uid": there["metadata"]["uid"]})
        return found

    def _observe(self, request: AdmissionRequest, seen: object) -> None:
        if isinstance(seen, Mutation):
            for profile in seen.applied:
                self.drawn[profile] = self.drawn.get(profile, 0) + 1
            self._left_out = seen.failed
            if seen.band:
                self.translated[seen.band] = self.translated.get(seen.band, 0) + 1
            return
        violations = [one for one in seen if isinstance(one, Violation)] if isinstance(seen, tuple) else []
        if request.operation == Operation.CREATE:
            self.violations = violations
        pod = f"{request.namespace}/{request.name}"
        self.failures.broken(violations, pod)
        for one in violations:
            key = (one.rule, str(request.operation), one.enforcement)
            self.broken.setdefault(key, BrokenRule(pod, one.message)).times += 1

    def _offered(self, _graph: RuleGraph, record: Record, calculations: Sequence[Calculation]) -> None:
        cluster = self.overcommit.cluster_of(self.graph)
        self.failures.offered(str(record["name"]), record, calculations, cluster, self._agenda.now)


_RESOURCES = resources.ResourcesByObject(
    one
    for one in (*EVERY_RESOURCE, resources.PRIORITY_CLASSES, resources.JOBS)
    if one not in (resources.NODES, resources.PODS, resources.NODE_METRICS)
)

_STARTED = StrategicPatch(
    {"status": {"phase": PHASE_RUNNING, "conditions": [{"type": CONDITION_READY, "status": "True"}]}}
)
"""What a kubelet says of a pod that runs."""

_OVER = StrategicPatch({"status": {"phase": PHASE_SUCCEEDED}})

Refusal = KubeError
"""What `submit` raises."""


def _resource(obj: Json) -> resources.Resource:
    """Of an object of a workload, which are of kinds that are known here."""
    found = _RESOURCES.of(obj)
    assert found is not None
    return found


def _plain(obj: Json) -> dict[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _FROM_LIVE}
    plain = {**obj, "metadata": metadata}
    if obj.get("kind") == resources.PERSISTENT_VOLUMES.kind and (reference := obj["spec"].get("claimRef")):
        named = {key: reference[key] for key in ("namespace", "name") if key in reference}
        plain["spec"] = {**obj["spec"], "claimRef": named}
    return plain


def _namespace(pod: Json) -> str:
    return pod["metadata"].get("namespace") or "default"
