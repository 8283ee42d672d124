"""What nodes say of themselves: how it is read, what it decides, what of it is refused."""

import json
from typing import Any

import pytest

from koordpolicy.algorithms.node_overrides import FIELDS, override_facts
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import MergePatch
from koordpolicy.language.cel.values import Duration
from koordpolicy.language.facts import FACTS, TIMES
from koordpolicy.manager.webhooks.node_rules import validated_nodes
from koordpolicy.model import protocol as wire
from koordpolicy.model.node import Node
from koordpolicy.model.time import NANOSECONDS
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import document, graph

RATIO = wire.CPU_RECLAIM_RATIO


def facts(strategy: Any = None, **labels: str) -> dict[str, Any]:
    """What is read of a node with this strategy, and these labels by the last word of their names."""
    annotations = {} if strategy is None else {wire.COLOCATION_STRATEGY: strategy}
    named = {f"node.koordinator.sh/{key.replace('_', '-')}": value for key, value in labels.items()}
    found = override_facts(Node("n", named, annotations), TIMES)
    return {path.removeprefix("overrides."): value for path, value in found.items()}


def test_every_field_is_a_fact() -> None:
    declared = {fact.path for fact in FACTS.leaves("node", "overrides")}
    assert declared == {f"overrides.{one.fact}" for one in FIELDS} | {"overrides.problems"}


@pytest.mark.parametrize(
    ("strategy", "labels", "expected"),
    [
        ({"cpuReclaimThresholdPercent": 70, "enable": False}, {}, {"cpuReclaim": 70.0, "enabled": False}),
        ({"cpuReclaimThresholdPercent": 70}, {"cpu_reclaim_ratio": "0.57"}, {"cpuReclaim": 56.0}),
        ({"degradeTimeMinutes": 2}, {}, {"staleAfter": Duration(120 * NANOSECONDS)}),
        ({"resourceDiffThreshold": 0.25}, {}, {"changedBy": 25.0}),
        ({"midReclaimMode": "", "extensions": {"x": [1]}, "unknown": {}}, {}, {"midMode": ""}),
        (
            {"metricAggregatePolicy": {"durations": ["1m", "30s"]}},
            {},
            {"percentilesOver": [Duration(60 * NANOSECONDS), Duration(30 * NANOSECONDS)]},
        ),
        ({"metricAggregatePolicy": {"durations": []}}, {}, {}),
        ({"degradeTimeMinutes": 2**62}, {}, {"staleAfter": Duration(2**63 - 1)}),
        (None, {"mid_static_cpu_reserved_ratio": "2", "memory_reclaim_ratio": "0"}, {"midStaticCPU": 200.0, "memoryReclaim": 0.0}),
    ],
)  # fmt: skip
def test_what_is_read(strategy: Any, labels: dict[str, str], expected: dict[str, Any]) -> None:
    assert facts(None if strategy is None else json.dumps(strategy), **labels) == {
        **expected,
        "problems": [],
    }


@pytest.mark.parametrize(
    ("strategy", "labels", "problem", "rest"),
    [
        ("{", {}, "not valid JSON", {}),
        ("[]", {}, "expected a JSON object", {}),
        ('{"enable": true, "cpuReclaimThresholdPercent": "70"}', {}, "cpuReclaimThresholdPercent: expected a whole", {}),
        ('{"enable": true, "midCPUThresholdPercent": 101}', {}, "midCPUThresholdPercent is 101: at most 100", {"enabled": True}),
        ('{"resourceDiffThreshold": 0}', {}, "resourceDiffThreshold is 0.0: more than 0", {}),
        ('{"metricMemoryCollectPolicy": "all"}', {}, "metricMemoryCollectPolicy is `all`", {}),
        (None, {"cpu_reclaim_ratio": "-0.1"}, f"{RATIO}: `-0.1` is not a ratio", {}),
        (None, {"cpu_reclaim_ratio": "60%"}, f"{RATIO}: `60%` is not a ratio", {}),
        (None, {"cpu_reclaim_ratio": "nan"}, f"{RATIO}: `nan` is not a ratio", {}),
        (None, {"cpu_reclaim_ratio": "1e300"}, f"{RATIO}: `1e300` is not a ratio", {}),
        ('{"cpuReclaimThresholdPercent": 50}', {"cpu_reclaim_ratio": ""}, f"{RATIO}: `` is not a ratio", {"cpuReclaim": 50.0}),
    ],
)  # fmt: skip
def test_what_nobody_can_follow_is_told(
    strategy: str | None, labels: dict[str, str], problem: str, rest: dict[str, Any]
) -> None:
    found = facts(strategy, **labels)
    assert problem in found.pop("problems")[0]
    assert found == rest


def labelled(small: SmallCluster, **labels: str | None) -> None:
    named = {f"node.koordinator.sh/{key.replace('_', '-')}": value for key, value in labels.items()}
    small.store.patch(resources.NODES, "n", MergePatch({"metadata": {"labels": named}}))


def test_a_label_decides_what_its_node_offers_until_it_goes() -> None:
    small = SmallCluster(graph(document("Overcommit", "o", {"resource": "batch", "parameters": {"cpuReclaim": "50%"}})))  # fmt: skip
    small.node(annotations={wire.COLOCATION_STRATEGY: '{"memoryReclaimThresholdPercent": 50}'})
    small.report(system="0")
    small.reconcile()
    assert small.offered() == {"batch-cpu": "50k", "batch-memory": str(40 * 2**30), "mid-cpu": "0", "mid-memory": "0"}  # fmt: skip
    labelled(small, cpu_reclaim_ratio="0.8")
    small.reconcile()
    assert small.offered()["batch-cpu"] == "80k"
    labelled(small, cpu_reclaim_ratio=None)
    small.reconcile()
    assert small.offered()["batch-cpu"] == "50k"


def test_what_is_wrong_is_refused_where_it_is_new() -> None:
    small = SmallCluster(graph())
    with pytest.raises(KubeError, match="colocation-strategy: not valid JSON"):
        small.node(annotations={wire.COLOCATION_STRATEGY: "{"})
    small.node()
    with pytest.raises(KubeError, match=r"node-overrides: .*cpu-reclaim-ratio: `much` is not a ratio"):
        labelled(small, cpu_reclaim_ratio="much")
    small.graph = graph(document("AdmissionRule", "node-overrides", {"enabled": False}))
    labelled(small, cpu_reclaim_ratio="much")
    small.graph = graph()
    labelled(small, cpu_reclaim_ratio="much", zone="a")
    labelled(small, cpu_reclaim_ratio="0.5")


def own_rule(**spec: Any) -> RuleGraph:
    return graph(document("AdmissionRule", "own", {"resource": "nodes", **spec}))


def test_rules_on_nodes_see_what_was_and_what_shall_be() -> None:
    small = SmallCluster(
        own_rule(
            operations=["UPDATE", "DELETE"],
            require={"cel": "operation == 'UPDATE' ? node.labels.?pool == oldNode.labels.?pool : node.unschedulable"},
            message={"cel": "node.name + ' stays'"},
        )
    )  # fmt: skip
    small.node()
    labelled(small, zone="a")
    with pytest.raises(KubeError, match="own: n stays"):
        small.store.patch(resources.NODES, "n", MergePatch({"metadata": {"labels": {"pool": "x"}}}))
    with pytest.raises(KubeError, match="own: n stays"):
        small.store.delete(resources.NODES, "n")
    small.store.patch(resources.NODES, "n", MergePatch({"spec": {"unschedulable": True}}))
    small.store.delete(resources.NODES, "n")


def test_an_api_server_asks_about_what_rules_read() -> None:
    scope = validated_nodes(graph())
    assert scope is not None
    assert scope.fail_open
    assert RATIO in scope.condition
    assert "object.spec" not in scope.condition
    for wide in (
        {"require": {"cel": "!node.unschedulable"}},
        {"match": {"nodes": {"matchLabels": {"pool": "x"}}}, "require": False},
        {"enabled": {"cel": "node.labels.size() > 1"}, "require": False},
    ):
        scope = validated_nodes(own_rule(**wide))
        assert scope is not None
        assert "object.spec != oldObject.spec" in scope.condition
        assert not scope.fail_open
