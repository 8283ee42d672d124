"""A small cluster in memory in which pods migrate: the controller's parts over it, look by look, at times of the test's own."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.migration.arbitration import Arbitration
from koordpolicy.descheduler.migration.evictors import MigrationEvictor
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.descheduler.migration.jobs import MigrationJobs
from koordpolicy.descheduler.migration.permits import PodIndex
from koordpolicy.descheduler.migration.rules import MigrationRules
from koordpolicy.descheduler.migration.steps import MigrationHost, MigrationSteps
from koordpolicy.descheduler.migration.workloads import WorkloadFinder
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.rules import ProfileRules, Stays
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import Object, resources
from koordpolicy.kube.errors import Conflict, KubeError
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.port import MergePatch
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.time import NANOSECONDS
from tests.unit.descheduler.clusters import NOW, PROFILE, node
from tests.vectors.policies import document, graph_of

WATCHED = frozenset({resources.NODES, resources.PODS, resources.POD_DISRUPTION_BUDGETS})


def migrating(**spec: Any) -> RuleGraph:
    """The built-in policies with what a test says of the kind Migration."""
    return graph_of(frozenset({"classes", "descheduling"}), document("Migration", "default", spec))


@dataclass
class World:
    """A Deployment `web` of so many pods on the node `full`, and the node `empty`. `seconds` since the beginning."""

    graph: RuleGraph
    replicas: int = 6
    seconds: float = 0.0
    told: list[tuple[str, bool]] = field(default_factory=list)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.store = Store(lambda: NOW / NANOSECONDS + self.seconds)
        self.cluster = MemoryCluster(self.store)
        for name in ("full", "empty"):
            self.store.create(resources.NODES, node(name, "32"))
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
        spec = {"replicas": self.replicas, "selector": {"matchLabels": labels}, "template": template}
        deployment = self._create(resources.DEPLOYMENTS, "web", spec)
        self.owner = self._create(
            resources.REPLICA_SETS, "web-1", spec, labels=labels, ownerReferences=[_reference(deployment)]
        )
        for number in range(self.replicas):
            self.pod(f"web-{number}", "full")
        self.restart()

    def restart(self) -> None:
        """Another process takes over, which knows what stands in the objects."""
        self.objects = ClusterObjects()
        self.pods = PodIndex(self.objects)
        unreadable = UnreadableObjects(lambda *found: None)
        self.mirrors = dict(
            EventHandlers(
                self.objects, unreadable=unreadable, wanted=WATCHED, after=self.pods.changed
            ).mirrors
        )
        self.jobs = MigrationJobs(self.cluster, unreadable, lambda: None)
        self.mirrors.update(self.jobs.mirrors)
        evictor = MigrationEvictor(self.cluster, lambda: self.seconds, _no_sleep)
        self.steps = MigrationSteps(
            MigrationHost(
                self.cluster,
                self.objects,
                self.jobs,
                evictor,
                self.now,
                self._tell,
                lambda strategy, result: None,
            )
        )
        workloads = WorkloadFinder(self.cluster, lambda: self.seconds)
        self.arbitration = Arbitration(
            self.objects, self.jobs, self.pods, workloads, self.now, self.steps.pod_of
        )
        self.rules = MigrationRules(self.graph)
        self.watch()
        self.steps.remember(self.jobs.every(), self.rules)

    def now(self) -> int:
        return NOW + int(self.seconds * NANOSECONDS)

    def watch(self) -> None:
        """All watches show what there is."""
        for resource, mirror in self.mirrors.items():
            mirror.replace(self.store.list(resource).items, "")

    def look(self, times: int = 1) -> None:
        """The controller looks at all jobs, after the watches."""
        for _ in range(times):
            self.watch()
            asyncio.run(self._look())
        self.watch()

    def migrate(self, name: str, strategy: str = "test") -> Stays | MigrationJob:
        """A round wants a pod to go."""
        pod = self.objects.pods["default", name]
        profile = ProfileRules(self.graph, PROFILE)
        move = Move(pod, pod.node_name, strategy, "it is too full")

        async def made() -> Stays | MigrationJob:
            job = await self.arbitration.job_for(move, self.rules, self.graph, profile)
            return job if isinstance(job, Stays) else await self.jobs.create(job)

        found = asyncio.run(made())
        self.watch()
        return found

    # --- what others do ---------------------------------------------------------------------------

    def pod(self, name: str, on: str, *, ready: bool = True, **metadata: Any) -> None:
        """A pod of the Deployment runs on a node."""
        container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec = {
            "schedulerName": "koord-scheduler",
            "nodeName": on,
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
        }
        metadata = {"ownerReferences": [_reference(self.owner)], "labels": {"app": "web"}, **metadata}
        self._create(resources.PODS, name, spec, **metadata)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
        self.set_status(resources.PODS, name, status, namespace="default")

    def job(self, name: str, pod: str, **spec: Any) -> None:
        """A user wants a pod to migrate."""
        about = {"namespace": "default", "name": pod}
        self.store.create(
            resources.POD_MIGRATION_JOBS, {"metadata": {"name": name}, "spec": {"podRef": about, **spec}}
        )
        self.watch()

    def reserved(self, room: Object, on: str = "empty") -> None:
        """The scheduler places a Reservation."""
        conditions = [{"type": "Scheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
        status = {"phase": "Available", "nodeName": on, "conditions": conditions}
        self.set_status(resources.RESERVATIONS, room["metadata"]["name"], status)

    def taken(self, room: Object, by: str) -> None:
        """A pod takes what a Reservation keeps."""
        uid = self.store.get(resources.PODS, by, namespace="default")["metadata"]["uid"]
        status = {
            **room["status"],
            "phase": "Succeeded",
            "currentOwners": [{"namespace": "default", "name": by, "uid": uid}],
        }
        self.set_status(resources.RESERVATIONS, room["metadata"]["name"], status)

    def set_status(
        self, resource: resources.Resource, name: str, status: Mapping[str, Any], namespace: str | None = None
    ) -> None:
        self.store.patch(
            resource, name, MergePatch({"status": status}), namespace=namespace, subresource="status"
        )

    # --- what became of it ------------------------------------------------------------------------

    def rooms(self) -> list[Object]:
        return list(self.store.list(resources.RESERVATIONS).items)

    def names(self) -> set[str]:
        return {one["metadata"]["name"] for one in self.store.list(resources.PODS, namespace="default").items}

    def only(self) -> MigrationJob:
        """The one job that there is."""
        (found,) = self.jobs.every()
        return found

    def _create(
        self, resource: resources.Resource, name: str, spec: Mapping[str, Any], **metadata: Any
    ) -> Object:
        return self.store.create(
            resource, {"metadata": {"name": name, **metadata}, "spec": dict(spec)}, namespace="default"
        )

    async def _look(self) -> None:
        for one in await self.arbitration.round(self.rules, self.graph):
            if one.forbidden is None:
                await self.jobs.patch(one.job, {"metadata": {"annotations": dict(one.annotations)}})
            else:
                await self.steps.fail(one.job, "ForbiddenMigratePod", one.forbidden.reason)
        for job in self.jobs.every():
            try:
                if job.done:
                    await self.steps.clean(job)
                elif job.ours and not job.paused and job.passed:
                    await self.steps.take(job, self.rules, self.graph)
            except Conflict:
                continue
            except KubeError:
                continue
        for job in self.jobs.every():
            await self.steps.sweep(job, self.rules)

    def _tell(self, about: Object, reason: str, message: str, bad: bool) -> None:
        self.told.append((reason, bad))


def _reference(owner: Object) -> dict[str, Any]:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


async def _no_sleep(seconds: float) -> None:
    """Time does not pass."""
