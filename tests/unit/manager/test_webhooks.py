"""Pods on their way into the in-memory cluster, through both webhooks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import MergePatch
from koordpolicy.manager.webhooks.mutation import Mutation
from tests.unit.manager.clusters import SmallCluster, cases
from tests.vectors.policies import document, graph

CASES = cases(Path(__file__).with_name("webhooks.yaml"))


def cluster_of(case: Mapping[str, Any]) -> SmallCluster:
    documents = [
        document(one["kind"], one["metadata"]["name"], one["spec"]) for one in case.get("policies", ())
    ]
    cluster = SmallCluster(graph(*documents))
    labels = MergePatch({"metadata": {"labels": case.get("namespace", {})}})
    cluster.store.patch(resources.NAMESPACES, "default", labels)
    return cluster


def missing(expected: Any, found: Any, at: str = "") -> list[str]:
    """Where `found` does not have what is expected; more may stand in it."""
    if isinstance(expected, Mapping):
        assert isinstance(found, Mapping), at
        return [
            line for key, value in expected.items() for line in missing(value, found.get(key), f"{at}.{key}")
        ]
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        return [
            line
            for index, value in enumerate(expected)
            for line in missing(value, found[index], f"{at}[{index}]")
        ]
    return [] if expected == found else [f"{at}: expected {expected!r}, found {found!r}"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_a_pod_on_its_way_in(case: dict[str, Any]) -> None:
    cluster = cluster_of(case)
    if "refused" in case:
        with pytest.raises(KubeError) as refusal:
            cluster.create(resources.PODS, case["pod"])
        assert case["refused"] in refusal.value.message
        return
    stored = cluster.create(resources.PODS, case["pod"])
    assert missing(case["stored"], stored) == []
    for path in case.get("absent", ()):
        found: Any = stored
        for step in path.split("."):
            found = found.get(step, {})
        assert found == {}, path


def test_updates_are_judged_against_what_was() -> None:
    cluster = SmallCluster(graph())
    pod = {"metadata": {"name": "p", "labels": {"koordinator.sh/qosClass": "LS"}}}
    cluster.create(resources.PODS, {**pod, "spec": {"containers": [{"name": "main", "image": "i"}]}})
    labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/priority": "7"}
    with pytest.raises(KubeError, match=r"(?s)immutable-qos.*immutable-sub-priority.*be-priority-forbidden"):
        cluster.store.patch(
            resources.PODS, "p", MergePatch({"metadata": {"labels": labels}}), namespace="default"
        )


def test_a_new_revision_holds_from_the_next_pod_on() -> None:
    cluster = SmallCluster(graph())
    spec = {"containers": [{"name": "main", "image": "i"}]}
    before = cluster.create(resources.PODS, {"metadata": {"name": "a"}, "spec": spec})
    cluster.graph = graph(document("ColocationProfile", "all", {"labels": {"drawn": "in"}}))
    after = cluster.create(resources.PODS, {"metadata": {"name": "b"}, "spec": spec})
    assert ("labels" in before["metadata"], after["metadata"]["labels"]) == (False, {"drawn": "in"})


def test_observers_hear_what_was_applied_and_what_was_not() -> None:
    documents = [
        document("ColocationProfile", "often", {"probability": "60%", "labels": {"a": "1"}}),
        document("ColocationProfile", "rarely", {"probability": "40%", "labels": {"b": "1"}}),
        document("AdmissionRule", "noted", {"require": False, "enforcement": "audit"}),
    ]
    cluster = SmallCluster(graph(*documents))
    spec = {"containers": [{"name": "main", "image": "i"}]}
    cluster.create(resources.PODS, {"metadata": {"name": "a"}, "spec": spec})
    mutation, violations = cluster.seen
    assert isinstance(mutation, Mutation)
    assert (mutation.applied, mutation.spared, mutation.band) == (("often",), ("rarely",), "batch")
    assert [(one.rule, one.enforcement) for one in violations] == [("noted", "audit")]
