"""What a manager decides while the lists of its cluster still come in: nothing that what is to come would change."""

import asyncio
from collections.abc import Callable
from typing import Any

from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.port import MergePatch, Object, ObjectList
from koordpolicy.kube.resources import NODE_METRICS, NODES, PODS, Resource
from koordpolicy.manager.process import Manager, Pace
from koordpolicy.model.time import time_text
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.process import Tasks
from tests.unit.agent.whole import CompiledPolicies
from tests.unit.kube.builders import store
from tests.unit.runtime.components import component_of
from tests.vectors.policies import graph

OFFER = "kubernetes.io/batch-cpu"
_TURNS = 500
"""Turns of the loop after which all has happened that can."""


class Policies(CompiledPolicies):
    """They are told of once, as live ones are."""

    def subscribe(self, heard: Any) -> Any:
        heard(None)
        return lambda: None

    def subscribe_stage(self, _heard: Any) -> Any:
        return lambda: None


class Slow(MemoryCluster):
    """Gives one object a page; of some resources the second page waits for `gates`."""

    def __init__(self, *args: Any, **arguments: Any) -> None:
        super().__init__(*args, **arguments)
        self.gates = {resource: asyncio.Event() for resource in (PODS, NODE_METRICS)}
        self.asked: set[Resource] = set()

    async def list(self, resource: Resource, *, limit: int = 0, **arguments: Any) -> ObjectList:
        self.asked.add(resource)
        if arguments.get("continue_token") and resource in self.gates:
            await self.gates[resource].wait()
        return await super().list(resource, limit=min(limit, 1), **arguments)


def _usage(cpu: str) -> dict[str, Any]:
    return {"resources": {"cpu": cpu, "memory": "1Gi"}}


def _cluster() -> Slow:
    """Nodes `a` and `b` have reported, `c` has not; a pod stands on each."""
    cluster = Slow(store())
    room = {"cpu": "100", "memory": "100Gi", "pods": "110"}
    for name in "abc":
        cluster.store.create(
            NODES, {"metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}}
        )
        requests = {"cpu": "10", "memory": "1Gi"}
        container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
        pod = {"metadata": {"name": f"on-{name}"}, "spec": {"nodeName": name, "containers": [container]}}
        cluster.store.create(PODS, pod, namespace="default")
    for name in "ab":
        cluster.store.create(NODE_METRICS, {"metadata": {"name": name}, "spec": {}})
        status = {
            "updateTime": time_text(now_ns()),
            "nodeMetric": {"nodeUsage": _usage("15"), "systemUsage": _usage("5")},
            "podsMetric": [{"namespace": "default", "name": f"on-{name}", "podUsage": _usage("10")}],
        }
        cluster.store.patch(NODE_METRICS, name, MergePatch({"status": status}), subresource="status")
    return cluster


def _offers(cluster: MemoryCluster) -> dict[str, str]:
    found: list[Object] = [cluster.store.get(NODES, name) for name in "abc"]
    return {
        one["metadata"]["name"]: one["status"]["allocatable"][OFFER]
        for one in found
        if OFFER in one["status"]["allocatable"]
    }


async def _turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  # many things may make it hold
            await asyncio.sleep(0.001)


def test_no_node_is_decided_about_without_all_pods_nor_before_its_own_report_can_be_known() -> None:
    async def story() -> None:
        cluster = _cluster()
        manager = Manager(component_of("manager", cluster, Policies(graph())), Pace())
        async with Tasks() as tasks:
            manager.start(tasks)
            await _until(lambda: len(manager.objects.nodes) == 3 and bool(manager.objects.pods))
            await _turns()
            assert _offers(cluster) == {}, "pods are still to come"
            assert NODE_METRICS not in cluster.asked, "what is needed first is asked for first"
            cluster.gates[PODS].set()
            await _until(lambda: bool(_offers(cluster)))
            await _turns()
            before = _offers(cluster)
            assert set(before) == {"a"}, "of the others the report may be still to come"
            cluster.gates[NODE_METRICS].set()
            await _until(
                lambda: "b" in _offers(cluster) and cluster.store.find(NODE_METRICS, "c") is not None
            )
            await _turns()
            assert _offers(cluster)["b"] == _offers(cluster)["a"] == before["a"]

    asyncio.run(story())
