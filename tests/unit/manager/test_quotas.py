"""Elastic quotas on their way into the in-memory cluster, and pods that belong to them."""

import json
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.admission import AdmissionRequest, Operation
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.known import FixedObjects
from koordpolicy.kube.port import MergePatch
from koordpolicy.kube.resources import ELASTIC_QUOTAS
from koordpolicy.manager.webhooks.bindings import BindingValidation, bound_pods
from koordpolicy.manager.webhooks.elastic_quotas import QuotaValidation
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.time import NANOSECONDS
from tests.unit.graph.policies_text import graph as graph_without_pack
from tests.unit.manager.clusters import SmallCluster, cases
from tests.unit.manager.test_webhooks import missing
from tests.vectors.policies import document, graph

CASES = cases(Path(__file__).with_name("quotas.yaml"))
CONTAINERS: Any = [{"name": "main", "image": "i"}]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_requests_about_quotas(case: dict[str, Any]) -> None:
    documents = [
        document(one["kind"], one["metadata"]["name"], one["spec"]) for one in case.get("policies", ())
    ]
    cluster = SmallCluster(graph(*documents))
    for step in case["steps"]:
        if "refused" in step:
            with pytest.raises(KubeError) as refusal:
                take(cluster, step)
            assert step["refused"] in refusal.value.message
        else:
            stored = take(cluster, step)
            if "stored" in step:
                assert missing(step["stored"], stored) == []


def take(cluster: SmallCluster, step: dict[str, Any]) -> Any:
    """What is stored after one step."""
    if "create" in step:
        return cluster.create(ELASTIC_QUOTAS, step["create"])
    if "pod" in step:
        return cluster.create(resources.PODS, {"spec": {"containers": CONTAINERS}, **step["pod"]})
    if "label" in step:
        name = step["label"]["metadata"]["name"]
        return cluster.store.patch(resources.PODS, name, MergePatch(step["label"]), namespace="default")
    if "quota" in step:
        return cluster.store.get(ELASTIC_QUOTAS, step["quota"], namespace="default")
    if "update" in step:
        name = step["update"]["metadata"]["name"]
        return cluster.store.patch(ELASTIC_QUOTAS, name, MergePatch(step["update"]), namespace="default")
    return cluster.store.delete(ELASTIC_QUOTAS, step["delete"], namespace="default")


def test_without_a_word_on_quotas_pods_and_quotas_come_as_they_are() -> None:
    rule = document("AdmissionRule", "own", {"require": {"cel": "'owner' in pod.labels"}})
    cluster = SmallCluster(graph_without_pack(json.dumps(rule)))
    pod = {"metadata": {"name": "p", "labels": {"owner": "me"}}, "spec": {"containers": CONTAINERS}}
    assert cluster.create(resources.PODS, pod)["metadata"]["name"] == "p"
    assert cluster.create(ELASTIC_QUOTAS, {"metadata": {"name": "q"}, "spec": {}})["spec"] == {}


def quota(name: str, cpu: str, parent: str = "") -> dict[str, Any]:
    labels = {"quota.scheduling.koordinator.sh/parent": parent} if parent else {}
    if not parent:
        labels["quota.scheduling.koordinator.sh/is-parent"] = "true"
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"max": {"cpu": "40"}, "min": {"cpu": cpu}},
    }


def asked(obj: dict[str, Any], *, dry_run: bool = False) -> AdmissionRequest:
    name = obj["metadata"]["name"]
    return AdmissionRequest(Operation.CREATE, ELASTIC_QUOTAS, "", "default", name, obj, None, dry_run=dry_run)


def test_what_is_let_through_counts_before_the_cluster_tells_of_it() -> None:
    seconds = 0
    objects = FixedObjects({ELASTIC_QUOTAS: [quota("shop", "10")]})
    context = WebhookContext(graph, objects, lambda: seconds * NANOSECONDS, lambda: 50.0)
    validation = QuotaValidation(context)

    def admits(obj: dict[str, Any], *, dry_run: bool = False) -> bool:
        answer = validation.answer(asked(obj, dry_run=dry_run))
        return answer is None or answer.allowed

    assert admits(quota("web", "6", "shop"), dry_run=True)
    assert admits(quota("web", "6", "shop"))
    assert not admits(quota("till", "6", "shop"))
    assert not admits(quota("web", "1", "shop"))  # the name is taken
    assert admits(quota("till", "4", "shop"))
    seconds = 31  # something else refused both: nothing was heard of them
    assert admits(quota("till", "10", "shop"))


def test_a_quota_of_many_siblings_is_refused_by_their_sum() -> None:
    many = [quota(f"q{at}", "1", "shop") for at in range(9)]
    context = WebhookContext(
        graph, FixedObjects({ELASTIC_QUOTAS: [quota("shop", "10"), *many]}), lambda: 0, lambda: 50.0
    )
    validation = QuotaValidation(context)
    assert validation.answer(asked(quota("last", "1", "shop"))) is None
    refused = validation.answer(asked(quota("more", "1", "shop")))
    assert refused is not None
    assert "min-sum-parent" in refused.message


def binding(user: str, *, pods: list[Any]) -> bool:
    """Whether a user may bind the pod `p` where the scheduler alone may."""
    parameters = {
        "users": {"type": "list(string)", "value": ["scheduler"]},
        "namespaces": {"type": "list(string)", "value": ["*"]},
    }
    compiled = graph(document("AdmissionRule", "binding-user", {"enabled": True, "parameters": parameters}))
    assert bound_pods(compiled) is not None
    context = WebhookContext(lambda: compiled, FixedObjects({resources.PODS: pods}), lambda: 0, lambda: 50.0)
    obj = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    request = AdmissionRequest(Operation.CREATE, resources.PODS, "binding", "web", "p", obj, None, user=user)
    answer = BindingValidation(context).answer(request)
    return answer is None or answer.allowed


def test_bindings_are_for_those_who_may() -> None:
    pod = {"metadata": {"name": "p", "namespace": "web"}, "spec": {"containers": CONTAINERS}}
    assert binding("koord-scheduler", pods=[pod])
    assert not binding("somebody", pods=[pod])
    assert binding("somebody", pods=[])  # nothing is known of the pod
    marked = {
        **pod,
        "metadata": {**pod["metadata"], "labels": {"koordinator.sh/binding-admission-bypass": ""}},
    }
    assert binding("somebody", pods=[marked])
    assert bound_pods(graph()) is None
