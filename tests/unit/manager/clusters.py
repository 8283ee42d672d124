"""A small cluster in memory, with the manager's parts at work on it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.port import MergePatch, Object
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.manager.controllers.controller import OvercommitController, Reconciliation
from koordpolicy.manager.process import WATCHED
from koordpolicy.manager.webhooks.hooks import chain
from koordpolicy.manager.webhooks.webhook import QuotaWrites, WebhookContext
from koordpolicy.model.time import NANOSECONDS, time_text

START = 1_800_000_000


def cases(file: Path) -> list[dict[str, Any]]:
    """The cases of a YAML file."""
    found: list[dict[str, Any]] = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    return found


class SmallCluster:
    """A store on a clock that stands, with the manager beside it. Change `graph` as a new revision would."""

    def __init__(self, graph: RuleGraph, draw: float = 50.0) -> None:
        self.graph = graph
        self.seconds = START
        self.seen: list[Any] = []
        self.store = Store(lambda: self.seconds)
        context = WebhookContext(
            lambda: self.graph,
            self.store,
            lambda: self.nanoseconds,
            lambda: draw,
            self.observe,
            quota_writes=QuotaWrites(MemoryCluster(self.store), together=False),
        )
        self.store.use_admission(chain(context))
        self.objects = ClusterObjects()
        self._mirrors = EventHandlers(
            self.objects, unreadable=UnreadableObjects(lambda *found: None), wanted=WATCHED
        ).mirrors
        self.controller = OvercommitController(
            lambda node, labels: self.graph, self.objects, lambda: self.nanoseconds
        )
        for band in graph.catalogue.bands.values():
            priority_class = {"metadata": {"name": band.class_name}, "value": band.low}
            self.create(resources.PRIORITY_CLASSES, priority_class)

    @property
    def nanoseconds(self) -> int:
        return self.seconds * NANOSECONDS

    def observe(self, _request: object, seen: object) -> None:
        self.seen.append(seen)

    def create(self, resource: resources.Resource, obj: Mapping[str, Any]) -> Object:
        namespace = "default" if resource.namespaced else None
        return self.store.create(resource, obj, namespace=namespace)

    def node(self, name: str = "n", annotations: Mapping[str, str] | None = None, **status: Any) -> Object:
        """A node with 100 CPUs and 100Gi, all allocatable."""
        amounts = {"cpu": "100", "memory": "100Gi", "pods": "110"}
        return self.create(
            resources.NODES,
            {
                "metadata": {"name": name, "annotations": dict(annotations or {})},
                "status": {"capacity": amounts, "allocatable": amounts, **status},
            },
        )

    def report(self, name: str = "n", *, system: str = "10", pods: Mapping[str, str] | None = None) -> None:
        """The node's report of now: what the system uses, and each pod of the default namespace (cpu)."""

        def usage(cpu: str) -> dict[str, Any]:
            return {"resources": {"cpu": cpu, "memory": "10Gi"}}

        status = {
            "updateTime": time_text(self.nanoseconds),
            "nodeMetric": {"nodeUsage": usage("50"), "systemUsage": usage(system)},
            "podsMetric": [
                {"namespace": "default", "name": pod, "podUsage": usage(cpu), "priority": "koord-prod"}
                for pod, cpu in (pods or {}).items()
            ],
        }
        if self.store.find(resources.NODE_METRICS, name) is None:
            self.create(resources.NODE_METRICS, {"metadata": {"name": name}, "spec": {}})
        self.store.patch(resources.NODE_METRICS, name, MergePatch({"status": status}), subresource="status")

    def look(self) -> None:
        """Let the manager see the cluster as it is."""
        for resource, mirror in self._mirrors.items():
            listed = self.store.list(resource)
            mirror.replace(listed.items, listed.resource_version)

    def reconcile(self, name: str = "n") -> Reconciliation | None:
        """One round of the controller on what the cluster is now."""
        self.look()
        return asyncio.run(self.controller.reconcile(MemoryCluster(self.store), name))

    def offered(self, name: str = "n") -> dict[str, Any]:
        """The node's overcommitted resources, by short name; capacity and allocatable agree."""
        status = self.store.get(resources.NODES, name)["status"]
        assert status["capacity"] == status["allocatable"]
        return {
            key.removeprefix("kubernetes.io/"): value
            for key, value in status["allocatable"].items()
            if key.startswith("kubernetes.io/")
        }
