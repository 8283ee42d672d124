"""Changing only a line of a policy changes what the manager does."""

from collections.abc import Callable
from typing import Any

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.errors import KubeError
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import graph, graph_with_line


def refused(labels: dict[str, str], **spec: Any) -> Callable[[RuleGraph], object]:
    """What the cluster says to such a pod; empty when it takes it."""

    def ask(policies: RuleGraph) -> object:
        containers = [{"name": "main", "image": "i", "resources": spec.get("resources", {})}]
        body = {"containers": containers, "priorityClassName": spec.get("priority_class", "")}
        small = SmallCluster(policies)
        small.create(resources.PRIORITY_CLASSES, {"metadata": {"name": "between-the-bands"}, "value": 6500})
        try:
            small.create(resources.PODS, {"metadata": {"name": "p", "labels": labels}, "spec": body})
        except KubeError as refusal:
            return refusal.message.partition("request: ")[2].partition(":")[0]
        return ""

    return ask


def offered(policies: RuleGraph) -> object:
    """The batch CPU of a node of 100 CPUs, 10 of them used by the system."""
    small = SmallCluster(policies)
    small.node()
    small.report()
    small.reconcile()
    return small.offered().get("batch-cpu")


BE = {"koordinator.sh/qosClass": "BE"}
LSE = {"koordinator.sh/qosClass": "LSE"}


@pytest.mark.parametrize(
    ("file", "old", "new", "outcome", "before", "after"),
    [
        (
            "classes/bands.yaml",
            "range: {from: 5000, to: 5999}",
            "range: {from: 5000, to: 6999}",
            refused(BE, priority_class="between-the-bands"),
            "be-priority-forbidden",
            "",
        ),
        (
            "classes/qos.yaml",
            "permittedBands: [mid, batch, free]",
            "permittedBands: [mid, free]",
            refused(BE, priority_class="koord-batch"),
            "",
            "be-priority-forbidden",
        ),
        (
            "classes/qos.yaml",
            "permittedBands: [prod, mid, batch, free, none]   # documented as prod only; the webhook asks no more",
            "permittedBands: [prod]",
            refused(LSE, priority_class="koord-mid", resources={"requests": {"cpu": "1"}}),
            "",
            "lse-priority-forbidden",
        ),
        (
            "admission/combinations.yaml",
            "number(pod.request.cpu) % 1000 == 0",
            "number(pod.request.cpu) % 500 == 0",
            refused(LSE, resources={"requests": {"cpu": "1500m"}}),
            "cpu-not-integer",
            "",
        ),
        ("overcommit/batch.yaml", "value: 60%", "value: 70%", offered, "50k", "60k"),
        (
            "overcommit/batch.yaml",
            "expression: max(node.capacity.cpu - variables.marginCPU - variables.takenCPU, 0)",
            "expression: max(node.capacity.cpu - variables.marginCPU, 0)",
            offered,
            "50k",
            "60k",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith(".yaml") else "",
)
def test_one_line(
    file: str, old: str, new: str, outcome: Callable[[RuleGraph], object], before: object, after: object
) -> None:
    assert (outcome(graph()), outcome(graph_with_line(file, old, new))) == (before, after)
