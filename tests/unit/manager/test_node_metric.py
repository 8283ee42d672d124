"""NodeMetric objects: what agents are to measure, as policies say, and nothing of what they measured."""

import asyncio
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.port import MergePatch
from koordpolicy.language.cel.values import Duration
from koordpolicy.manager.controllers.node_metric import NodeMetricController, collect_policy
from koordpolicy.model.time import NANOSECONDS
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import document, graph

KOORDINATORS: dict[str, Any] = {
    "aggregateDurationSeconds": 300,
    "reportIntervalSeconds": 60,
    "nodeAggregatePolicy": {"durations": ["5m0s", "10m0s", "30m0s"]},
    "nodeMemoryCollectPolicy": "usageWithoutPageCache",
}


def cluster(**spec: Any) -> SmallCluster:
    made = SmallCluster(graph(document("MetricCollection", "own", spec)))
    made.node()
    return made


def reconcile(small: SmallCluster, name: str = "n") -> bool:
    small.look()
    controller = NodeMetricController(
        lambda node, labels: small.graph,
        small.objects,
        lambda one: small.store.find(resources.NODE_METRICS, one),
        lambda: small.nanoseconds,
    )
    return asyncio.run(controller.reconcile(MemoryCluster(small.store), name))


def policy(small: SmallCluster) -> Any:
    return small.store.get(resources.NODE_METRICS, "n")["spec"]["metricCollectPolicy"]


def test_each_node_has_its_object_and_a_second_round_writes_nothing() -> None:
    small = cluster()
    assert reconcile(small)
    assert policy(small) == KOORDINATORS
    assert not reconcile(small)


def test_a_report_stays_when_policy_changes() -> None:
    small = cluster()
    reconcile(small)
    small.report()
    status = small.store.get(resources.NODE_METRICS, "n")["status"]
    small.graph = graph(document("MetricCollection", "own", {"every": "15s", "percentilesOver": ["1h"]}))
    assert reconcile(small)
    assert policy(small) == {
        **KOORDINATORS,
        "reportIntervalSeconds": 15,
        "nodeAggregatePolicy": {"durations": ["1h0m0s"]},
    }
    assert small.store.get(resources.NODE_METRICS, "n")["status"] == status


def test_what_somebody_else_wrote_is_mended() -> None:
    small = cluster()
    reconcile(small)
    other = {"spec": {"metricCollectPolicy": {"reportIntervalSeconds": 5}}}
    small.store.patch(resources.NODE_METRICS, "n", MergePatch(other))
    assert reconcile(small)
    assert policy(small) == KOORDINATORS


@pytest.mark.parametrize("spec", [{"enabled": False}, {"every": {"cel": "duration(node.labels['every'])"}}])
def test_none_is_made_where_policy_does_not_say_what(spec: dict[str, Any]) -> None:
    small = cluster(**spec)
    assert not reconcile(small)
    assert small.store.find(resources.NODE_METRICS, "n") is None


def test_it_goes_with_its_node() -> None:
    small = cluster()
    reconcile(small)
    small.store.delete(resources.NODES, "n")
    assert reconcile(small)
    assert small.store.find(resources.NODE_METRICS, "n") is None
    assert not reconcile(small)


@pytest.mark.parametrize(("nanoseconds", "seconds"), [(0, 1), (NANOSECONDS - 1, 1), (90 * NANOSECONDS, 90)])
def test_seconds_are_whole(nanoseconds: int, seconds: int) -> None:
    found = collect_policy(Duration(nanoseconds), Duration(nanoseconds), [], "usageWithoutPageCache")
    assert found["reportIntervalSeconds"] == found["aggregateDurationSeconds"] == seconds
