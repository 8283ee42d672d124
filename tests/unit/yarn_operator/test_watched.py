"""What the operator hears of a cluster: no more than policies read, and all of that before it decides by them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.port import ObjectList
from koordpolicy.kube.resources import (
    DEVICES,
    NODE_METRICS,
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    PODS,
    Resource,
)
from koordpolicy.runtime.process import Tasks
from koordpolicy.yarn.resource_manager import ResourceManagerAccess
from koordpolicy.yarn_operator.process import YARNOperator
from koordpolicy.yarn_operator.watched import ON_DEMAND, read_resources
from tests.parts.processes import free_port
from tests.unit.agent.whole import CompiledPolicies
from tests.unit.kube.builders import store
from tests.unit.runtime.components import component_of
from tests.vectors.policies import document, graph

BY_ANNOTATION = {"nodeManager": {"cel": "node.annotations[?'node.yarn.koordinator.sh'].orValue('')"}}
"""Finds NodeManagers without a look at pods."""


def of(**spec: Any) -> Any:
    return graph(document("YARNNode", "own", {**BY_ANNOTATION, "pace": {"interval": "100ms"}, **spec}))


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("node.allocatable.batch.cpu > node.free.cpu", set()),
        ("node.resources.requested.size() > 1", set()),
        ("has(node.usage.total.cpu) && node.usage.total.cpu > node.free.cpu", {NODE_METRICS}),
        ("has(node.resources.usage)", {NODE_METRICS}),
        ("node.?metric.age.orValue(duration('1s')) > duration('1m')", {NODE_METRICS}),
        ("node.hostApplications.exists(a, a.name == 'nm')", {NODE_METRICS}),
        ("node.pods.exists(p, p.name == 'a')", {NODE_METRICS}),
        ("node.zones.exists(z, z.index == 1)", {NODE_RESOURCE_TOPOLOGIES}),
        ("node.?cpuInfo.turbo.orValue(true)", {NODE_RESOURCE_TOPOLOGIES}),
        ("node.devices.size() > 0 || 'a' in node.deviceLabels", {DEVICES}),
    ],
)
def test_resources_that_facts_follow_from(expression: str, found: set[Resource]) -> None:
    assert read_resources(of(enabled={"cel": expression})) == found


def test_a_condition_reads_as_well_and_other_kinds_are_none_of_ours() -> None:
    always = document("YARNNode", "own", BY_ANNOTATION)
    sometimes = document(
        "YARNNode", "with-gpus", {"match": {"condition": "node.devices.size() > 0"}, "enabled": False}
    )
    assert read_resources(graph(always, sometimes)) == {DEVICES}
    other = document("NodeReservation", "own", {"cpu": {"cel": "node.usage.total.cpu"}})
    assert read_resources(graph(always, other)) == frozenset()


class Asked(MemoryCluster):
    """Knows what it was asked for; Devices come in once the gate is open."""

    def __init__(self, *args: Any, **arguments: Any) -> None:
        super().__init__(*args, **arguments)
        self.asked: set[Resource] = set()
        self.gate = asyncio.Event()

    async def list(self, resource: Resource, **arguments: Any) -> ObjectList:
        self.asked.add(resource)
        if resource is DEVICES:
            await self.gate.wait()
        return await super().list(resource, **arguments)


async def _until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  # many things may make it hold
            await asyncio.sleep(0.01)


def test_what_a_new_revision_reads_is_known_before_it_decides() -> None:
    async def story() -> None:
        cluster, policies = Asked(store()), CompiledPolicies(of())
        cluster.store.create(NODES, {"metadata": {"name": "n"}})
        component = component_of("yarn-operator", cluster, policies)
        access = ResourceManagerAccess((f"http://127.0.0.1:{free_port()}",))
        operator = YARNOperator(component, access, "default")

        def problem() -> Any:
            return operator.status()["yarn"]["problem"]

        def asked_of_yarn() -> float:
            requests = {"request": "nodes", "result": "unanswered"}
            return component.process.metrics.value("koordpolicy_yarn_requests_total", **requests) or 0

        async with Tasks() as tasks:
            operator.start(tasks)
            await _until(problem)
            assert "does not answer" in problem()
            assert cluster.asked == {NODES, PODS}
            policies.graph = of(enabled={"cel": "node.devices.size() == 0"})
            await _until(lambda: DEVICES in cluster.asked)
            before = asked_of_yarn()
            await asyncio.sleep(3)  # longer than the wait for the next attempt
            assert asked_of_yarn() == before, "a round would decide without the devices"
            cluster.gate.set()
            await _until(lambda: asked_of_yarn() > before)
            assert cluster.asked & ON_DEMAND == {DEVICES}

    asyncio.run(story())
