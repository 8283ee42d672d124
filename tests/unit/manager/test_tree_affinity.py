"""Pods that are kept to the nodes of their quota's tree, on their way into the in-memory cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import MergePatch
from koordpolicy.kube.resources import ELASTIC_QUOTA_PROFILES, ELASTIC_QUOTAS, PODS
from koordpolicy.manager.webhooks.rehearsal import PictureObjects, Rehearsal
from koordpolicy.manager.webhooks.scope import mutated_pods
from koordpolicy.manager.webhooks.tracing import path_text
from koordpolicy.model.protocol import QUOTA_TREE_ID
from tests.unit.graph.policies_text import graph as graph_without_pack
from tests.unit.manager.clusters import SmallCluster, cases
from tests.vectors.policies import document, graph

CASES = cases(Path(__file__).with_name("tree_affinity.yaml"))
ON: Any = {"nodeAffinity": True}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def site(policy: dict[str, Any], *documents: dict[str, Any]) -> SmallCluster:
    """Quotas `team` (tree t), `lost` (tree u) and `free` (no tree), and the nodes of tree t."""
    cluster = SmallCluster(graph(document("QuotaTree", "own", policy), *documents))
    for name, tree in (("team", "t"), ("lost", "u"), ("free", "")):
        labels = {QUOTA_TREE_ID: tree} if tree else {}
        cluster.create(ELASTIC_QUOTAS, {"metadata": {"name": name, "labels": labels}, "spec": {}})
    selector = {"matchLabels": {"pool": "a"}, "matchExpressions": [{"key": "gpu", "operator": "Exists"}]}
    for name, chosen in (("nodes", selector), ("other", {"matchLabels": {"pool": "b"}})):
        cluster.create(ELASTIC_QUOTA_PROFILES, profile(name, chosen))
    return cluster


def profile(name: str, selector: dict[str, Any]) -> dict[str, Any]:
    labels = {QUOTA_TREE_ID: "t"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"quotaName": "r", "nodeSelector": selector}}  # fmt: skip


def terms(cluster: SmallCluster, given: dict[str, Any]) -> Any:
    """The required terms of a pod as it is stored; None for none."""
    spec = {"containers": [{"name": "main", "image": "i"}], **given.get("spec", {})}
    pod = cluster.create(PODS, {"metadata": {"name": "p", **given.get("metadata", {})}, "spec": spec})
    required = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(_REQUIRED)
    return None if required is None else required["nodeSelectorTerms"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_which_nodes_a_pod_is_kept_to(case: dict[str, Any]) -> None:
    documents = [
        document(one["kind"], one["metadata"]["name"], one["spec"]) for one in case.get("policies", ())
    ]
    cluster = site(case.get("policy", ON), *documents)
    for quota in case.get("quotas", ()):
        cluster.create(ELASTIC_QUOTAS, {"spec": {}, **quota})
    if "refused" in case:
        with pytest.raises(KubeError, match=case["refused"]):
            terms(cluster, case["pod"])
        return
    assert terms(cluster, case["pod"]) == case["terms"]


def test_profiles_that_change_and_go_are_followed() -> None:
    cluster = site(ON)
    pod: Any = {"metadata": {"labels": {"quota.scheduling.koordinator.sh/name": "team"}}}

    def keys() -> list[str]:
        found = terms(cluster, pod)
        cluster.store.delete(PODS, "p", namespace="default", grace_seconds=0)
        return [f"{one['key']}={','.join(one.get('values', ()))}" for one in found[0]["matchExpressions"]] if found else []  # fmt: skip

    assert keys() == ["pool=a", "gpu="]
    cluster.store.patch(
        ELASTIC_QUOTA_PROFILES,
        "nodes",
        MergePatch({"metadata": {"labels": {QUOTA_TREE_ID: "another"}}}),
        namespace="default",
    )
    assert keys() == ["pool=b"]
    cluster.store.delete(ELASTIC_QUOTA_PROFILES, "other", namespace="default")
    assert keys() == []


@pytest.mark.parametrize("policy", [None, {"fallback": "team"}, {"quotaOfPod": "team", **ON}])
def test_without_a_pack_pods_go_where_policy_says(policy: dict[str, Any] | None) -> None:
    documents = [] if policy is None else [json.dumps(document("QuotaTree", "own", policy))]
    cluster = SmallCluster(graph_without_pack(*documents))
    cluster.create(ELASTIC_QUOTAS, {"metadata": {"name": "team", "labels": {QUOTA_TREE_ID: "t"}}, "spec": {}})
    cluster.create(ELASTIC_QUOTA_PROFILES, profile("nodes", {"matchLabels": {"pool": "a"}}))
    assert (terms(cluster, {}) is not None) == (policy is not None and "nodeAffinity" in policy)


def test_api_servers_ask_about_any_pod_where_trees_have_nodes() -> None:
    without = mutated_pods(graph())
    assert without is not None
    assert without.condition
    kept = mutated_pods(graph(document("QuotaTree", "own", ON)))
    assert kept is not None
    assert (kept.condition, kept.objects, kept.namespaces, kept.fail_open) == ("", (), (), False)


def test_an_explanation_names_the_policy_that_keeps_a_pod_to_nodes() -> None:
    labels = {QUOTA_TREE_ID: "t"}
    given = profile("nodes", {"matchLabels": {"pool": "a"}})
    given["metadata"]["namespace"] = "default"
    objects: dict[Any, Any] = {
        ELASTIC_QUOTAS: [{"metadata": {"name": "team", "namespace": "default", "labels": labels}}],
        ELASTIC_QUOTA_PROFILES: [given],
    }
    compiled = graph(document("QuotaTree", "own", ON))
    pod = {
        "metadata": {"name": "p", "labels": {"quota.scheduling.koordinator.sh/name": "team"}},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    }
    found = Rehearsal(compiled, PictureObjects(compiled, objects), 0).of(pod)
    assert (found.refused, found.mutation.tree) == ("", "t")
    (change,) = found.changes
    assert change.decision == "QuotaTree.nodeAffinity"
    assert "overlay/0.yaml" in {place.file for place in change.places}
    assert "nodeAffinity" in path_text(change.changes[0])
