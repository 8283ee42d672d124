"""Plans that stay while nothing that they follow from has changed."""

from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.agent.collection import Collection
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.measurements.levels import Measurements
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.plan import Plan
from koordpolicy.agent.unchanged import Unchanged, read_facts
from koordpolicy.algorithms.records import PodRecords, pods_on_node
from koordpolicy.language.facts import TIMES
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.model.time import NANOSECONDS
from tests.unit.agent.nodes import NOW, PROCESSORS, record, sight
from tests.vectors.policies import document, graph

S = NANOSECONDS
COLLECTION = Collection(
    60 * S, 300 * S, (300 * S,), "usageWithoutPageCache", S, 10 * S, 100, 10 * S, 3 * S, S, 30 * S
)


def frame(*documents: dict[str, Any]) -> NodeFrame:
    policies = graph(*documents)
    seen = sight()
    root = FakeRoot()
    hierarchy = discover_hierarchy(root)
    door = KernelDoor(root, hierarchy, lambda: 0, DoorLimits(S, 1, S, S, 10), WriteLog(1))
    kernel = NodeKernel(root, hierarchy, door)
    measurements = Measurements(COLLECTION)
    return NodeFrame(
        policies, seen.node, record(policies, seen), {}, measurements, COLLECTION, kernel, PROCESSORS, NOW, 0
    )


def hook(request: str) -> dict[str, Any]:
    return document("ContainerHook", "own", {"container": {"cpuRequest": {"cel": request}}})


@pytest.mark.parametrize(
    ("request_", "kept", "timeless"),
    [
        ("container.request.cpu", True, True),
        ("node.capacity.cpu * percent(10)", True, True),
        ("node.usage.total.cpu", False, True),
        ("now > timestamp('2020-01-01T00:00:00Z') ? millicores(1) : millicores(2)", False, False),
    ],
)
def test_a_plan_is_made_anew_when_a_fact_that_policies_read_is_another(
    request_: str, kept: bool, timeless: bool
) -> None:
    first = frame(hook(request_))
    assert read_facts(first.graph, ("ContainerHook",)).timeless is timeless
    strategy = Unchanged(lambda one: Plan(notes=(str(one.record["usage.total.cpu"]),)), ("ContainerHook",))
    plan = strategy.plan(first)
    busier = replace(first, record={**first.record, "usage.total.cpu": 15_000})
    assert (strategy.plan(busier) is plan) is kept
    assert strategy.plan(replace(busier, pods={})) is not plan


def test_records_of_pods_are_made_once_and_are_each_callers_own() -> None:
    policies, seen, known = graph(), sight(), PodRecords()
    plain = pods_on_node(seen.pods, seen.metric, policies.catalogue, TIMES)
    for _ in range(2):
        found = pods_on_node(seen.pods, seen.metric, policies.catalogue, TIMES, known)
        assert found == plain
        found[0]["name"] = "another"
    changed = replace(seen.pods[0], labels={})
    assert pods_on_node([changed], None, policies.catalogue, TIMES, known) == pods_on_node(
        [changed], None, policies.catalogue, TIMES
    )
