"""Reviews over the server's routes: what an API server sends, what it should not, and what it gets."""

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionRequest
from koordpolicy.kube.known import FixedObjects
from koordpolicy.kube.resources import PRIORITY_CLASSES
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.server import WebhookServer
from koordpolicy.manager.webhooks.webhook import Webhook, WebhookContext
from koordpolicy.runtime.http import Request, Response
from koordpolicy.runtime.metrics import Metrics
from tests.vectors.policies import document, graph

NOW = 1_800_000_000 * 10**9
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "spark"}},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}
PODS = {"group": "", "version": "v1", "resource": "pods"}


class Observer:
    def __init__(self) -> None:
        self.failures: list[str] = []

    def failed(self, webhook: Webhook, request: AdmissionRequest, error: Exception) -> None:
        self.failures.append(f"{webhook.name}: {error}")


def server_of(*policies: Mapping[str, Any], waiting: str = "") -> "Asked":
    return Asked(graph(*policies), waiting)


class Asked:
    """A server without a network, and what it was told."""

    def __init__(self, compiled: RuleGraph, waiting: str) -> None:
        self.observer = Observer()
        self.metrics = Metrics("manager")
        context = WebhookContext(
            lambda: compiled,
            FixedObjects({PRIORITY_CLASSES: [{"metadata": {"name": "koord-batch"}, "value": 5000}]}),
            lambda: NOW,
            lambda: 50.0,
        )
        server = WebhookServer(
            context, self.metrics, self.observer, waiting=lambda: waiting, audit=lambda: {"revision": "r1"}
        )
        self._routes = {route.path: route.answer for route in server.routes()}

    def post(self, path: str, body: bytes, **query: str) -> Response:
        return asyncio.run(self._routes[path](Request("POST", path, query, {}, body)))

    def review(self, path: str, **changes: Any) -> dict[str, Any]:
        response = self.post(path, json.dumps(review(**changes)).encode())
        assert response.status == 200, response.body
        told = json.loads(response.body)
        assert (told["apiVersion"], told["kind"], told["response"]["uid"]) == (
            "admission.k8s.io/v1",
            "AdmissionReview",
            "u1",
        )
        return dict(told["response"])


def review(**changes: Any) -> dict[str, Any]:
    request = {
        "uid": "u1",
        "resource": PODS,
        "operation": "CREATE",
        "namespace": "default",
        "name": "p",
        "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
        "object": POD,
        "oldObject": None,
        "dryRun": False,
        **changes,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def profile(**spec: Any) -> Mapping[str, Any]:
    return document(
        "ColocationProfile", "spark", {"match": {"pods": {"matchLabels": {"app": "spark"}}}, **spec}
    )


OTHER = {**POD, "spec": {"containers": [{"name": "main", "image": "another"}]}}


def rule(name: str, **spec: Any) -> Mapping[str, Any]:
    return document("AdmissionRule", name, {"require": False, **spec})


def patch_of(told: Mapping[str, Any]) -> Any:
    assert told["patchType"] == "JSONPatch"
    return json.loads(base64.b64decode(told["patch"]))


def test_a_pod_is_changed_by_a_patch_of_what_changed() -> None:
    told = server_of(profile(labels={"drawn": "in"})).review("/mutate-pod")
    assert told["allowed"] is True
    assert patch_of(told) == [{"op": "add", "path": "/metadata/labels/drawn", "value": "in"}]
    assert told["auditAnnotations"] == {"revision": "r1"}


def test_a_pod_that_nothing_touches_has_no_patch() -> None:
    told = server_of().review("/mutate-pod")
    assert told == {"uid": "u1", "allowed": True, "auditAnnotations": {"revision": "r1"}}


def test_a_review_again_changes_nothing_more() -> None:
    server = server_of(profile(labels={"drawn": "in"}, qosClass="BE"))
    changed = {**POD, "metadata": {**POD["metadata"], "labels": {"app": "spark", "drawn": "in", "koordinator.sh/qosClass": "BE"}}}  # type: ignore[dict-item]  # fmt: skip
    assert "patch" not in server.review("/mutate-pod", object=changed)


def test_each_enforcement_has_its_place() -> None:
    rules = [rule(kind, enforcement=kind, message=f"no {kind}") for kind in ("enforce", "warn", "audit")]
    told = server_of(*rules).review("/validate-pod")
    assert told["allowed"] is False
    assert told["status"] == {"code": 403, "message": "enforce: no enforce"}
    assert told["warnings"] == ["warn: no warn"]
    assert told["auditAnnotations"] == {"revision": "r1", "violations": "audit: no audit"}


FAILING = {"cel": "pod.labels['app'] + pod.labels['missing']"}


def test_a_profile_that_fails_for_a_pod_refuses_that_pod_and_says_why() -> None:
    server = server_of(profile(labels={"x": FAILING}))
    told = server.review("/mutate-pod")
    assert (told["allowed"], told["status"]["code"]) == (False, 500)
    assert "profile `spark`" in told["status"]["message"]
    assert len(server.observer.failures) == 1
    other = {**POD, "metadata": {"name": "p", "labels": {"app": "spark", "missing": "there"}}}
    assert server.review("/mutate-pod", object=other)["allowed"] is True


def test_a_profile_that_may_be_left_out_is_and_the_user_is_told() -> None:
    server = server_of(profile(labels={"x": FAILING}, failurePolicy="Ignore"))
    told = server.review("/mutate-pod")
    assert told["allowed"] is True
    assert "patch" not in told
    (warning,) = told["warnings"]
    assert warning.startswith("profile `spark` is left out:")


@pytest.mark.parametrize(("policy", "allowed"), [("Fail", False), ("Ignore", True)])
def test_a_rule_that_cannot_be_decided_does_as_its_failure_policy_says(policy: str, allowed: bool) -> None:
    failing = rule("team", require={"cel": "pod.labels['missing'] == 'x'"}, failurePolicy=policy)
    told = server_of(failing).review("/validate-pod")
    assert told["allowed"] is allowed
    said = told["warnings"][0] if allowed else told["status"]["message"]
    assert "the rule cannot be decided" in said


@pytest.mark.parametrize("subresource", ["", "resize", "ephemeralcontainers"])
def test_updates_keep_to_rules_whichever_way_they_come(subresource: str) -> None:
    update = {"operation": "UPDATE", "subResource": subresource, "oldObject": OTHER}
    assert server_of(rule("all")).review("/validate-pod", **update)["allowed"] is False


def test_what_holds_a_pod_that_goes_can_be_taken_off() -> None:
    going = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}  # type: ignore[dict-item]
    server = server_of(rule("all", operations=["UPDATE", "DELETE"]))
    assert (
        server.review("/validate-pod", operation="UPDATE", object=going, oldObject=going)["allowed"] is True
    )
    assert server.review("/validate-pod", operation="UPDATE", oldObject=OTHER)["allowed"] is False
    deleted = server.review("/validate-pod", operation="DELETE", object=None, oldObject=going)
    assert deleted["allowed"] is False


@pytest.mark.parametrize(
    ("field", "value", "asked"),
    [
        ("finalizers", ["example.com/held"], False),
        ("managedFields", [{"manager": "kubectl"}], False),
        ("labels", {"app": "other"}, True),
        ("annotations", {"note": "x"}, True),
        ("ownerReferences", [{"kind": "Job", "name": "j", "uid": "1"}], True),
    ],
)
def test_an_update_is_judged_where_it_changes_what_rules_can_speak_of(
    field: str, value: Any, asked: bool
) -> None:
    update = {
        "operation": "UPDATE",
        "oldObject": {**POD, "metadata": {**POD["metadata"], field: value}},  # type: ignore[dict-item]
    }
    assert server_of(rule("all")).review("/validate-pod", **update)["allowed"] is not asked
    about_users = rule("robots", require={"cel": "user == 'robot'"})
    assert server_of(about_users).review("/validate-pod", **update)["allowed"] is False


@pytest.mark.parametrize("path", ["/mutate-pod", "/validate-pod"])
def test_a_pod_of_more_containers_than_any_node_runs_is_refused(path: str) -> None:
    containers = [{"name": f"c{number}", "image": "i"} for number in range(700)]
    spec = {"containers": containers[:600], "initContainers": containers[:401]}
    told = server_of(rule("any", require=True)).review(path, object={**POD, "spec": spec})
    assert (told["allowed"], told["status"]["code"]) == (False, 400)
    assert told["status"]["message"] == "spec: 1001 containers, at most 1000 are admitted"


def test_how_many_containers_are_too_many_says_the_bundle() -> None:
    bundle = document(
        "PolicyBundle", "ours", {"extends": ["koordinator"], "budgets": {"containersPerPod": 2}}
    )
    containers = [{"name": f"c{number}", "image": "i"} for number in range(3)]
    server = server_of(rule("any", require=True), bundle)
    told = server.review("/validate-pod", object={**POD, "spec": {"containers": containers}})
    assert told["status"]["message"] == "spec: 3 containers, at most 2 are admitted"
    assert server.review("/validate-pod", object={**POD, "spec": {"containers": containers[:2]}})["allowed"]


_SPOILED: list[Any] = [
    {},
    {"metadata": 3},
    {"metadata": {"labels": []}},
    {"metadata": {"labels": {"a": 1}}},
    {**POD, "spec": {"containers": "all"}},
    {**POD, "spec": []},
    {"metadata": {"name": "p"}, "data": []},
    {"metadata": {"name": "p"}, "spec": {"max": {"cpu": "many"}, "min": 5}},
]


@pytest.mark.parametrize("webhook", [one for one in WEBHOOKS if "UPDATE" in one.operations and one.scope_here is None], ids=lambda one: str(one.name))  # fmt: skip
@pytest.mark.parametrize("spoiled", _SPOILED, ids=json.dumps)
def test_an_old_object_that_cannot_be_read_is_no_mistake_of_ours(webhook: Webhook, spoiled: Any) -> None:
    resource = webhook.resources[0]
    named = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    changes = {"resource": named, "operation": "UPDATE", "subResource": webhook.subresources[0]}
    server = server_of(
        rule("all", require={"cel": "oldPod.qos == pod.qos"}), rule("q", resource="elasticquotas")
    )
    for new, old in ((POD, spoiled), (spoiled, spoiled)):
        body = json.dumps(review(**changes, name="slo-controller-config", object=new, oldObject=old)).encode()
        response = server.post(webhook.path, body)
        assert response.status == 200, response.body


def test_an_object_that_cannot_be_read_is_refused() -> None:
    told = server_of().review("/validate-pod", object={**POD, "spec": {"containers": "all"}})
    assert (told["allowed"], told["status"]["code"]) == (False, 400)
    assert "spec.containers" in told["status"]["message"]


def changed(**changes: Any) -> Callable[[], bytes]:
    return lambda: json.dumps(review(**changes)).encode()


MALFORMED: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "not JSON"),
    "no JSON": (lambda: b"{", "not JSON"),
    "a list": (lambda: b"[]", "no AdmissionReview"),
    "another kind": (lambda: b'{"kind": "Pod", "apiVersion": "v1"}', "no AdmissionReview"),
    "an old version": (
        lambda: b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}',
        "admission.k8s.io/v1",
    ),
    "no request": (lambda: b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "uid"),
    "an unknown operation": (changed(operation="CONNECT"), "`CONNECT` is none that validate-pod decides"),
    "another resource": (changed(resource={**PODS, "resource": "nodes"}), "`nodes.v1.`"),
    "a subresource": (changed(subResource="exec"), "`exec`"),
    "no object": (changed(object=None), "request.object"),
    "an object that is none": (changed(object="p"), "request.object"),
    "a user that is none": (changed(userInfo="jane"), "userInfo"),
    "too deep": (lambda: b"[" * 200 + b"]" * 200, "levels deep"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_is_no_review_is_told_by_the_status(case: str) -> None:
    body, words = MALFORMED[case]
    response = server_of().post("/validate-pod", body())
    assert response.status == 400
    assert words in response.body.decode()


def test_a_pod_of_three_megabytes_is_answered() -> None:
    large = {**POD, "metadata": {"name": "p", "annotations": {"note": "x" * 3_000_000}}}
    assert server_of().review("/validate-pod", object=large)["allowed"] is True


def test_nothing_is_answered_before_policies_are_there() -> None:
    response = server_of(waiting="not yet").post("/mutate-pod", json.dumps(review()).encode())
    assert (response.status, response.body) == (503, b"not yet\n")
    # API servers ask again, and over another connection: another replica may be ready.
    assert (response.headers, response.last) == ({"Retry-After": "1"}, True)


def test_a_decision_is_given_up_when_the_api_server_does_not_wait_any_more() -> None:
    async def for_ever(_: AdmissionRequest) -> None:
        await asyncio.Event().wait()

    (template,) = [one for one in WEBHOOKS if one.name == "validate-pod"]
    slow = Webhook(
        "validate-pod", template.phase, template.resources, template.operations, lambda _: for_ever
    )
    context = WebhookContext(graph, FixedObjects(), lambda: NOW, lambda: 50.0)
    server = WebhookServer(context, Metrics("manager"), Observer(), waiting=str, audit=dict, webhooks=(slow,))
    (route,) = server.routes()
    asked = Request("POST", route.path, {"timeout": "10ms"}, {}, json.dumps(review()).encode())
    assert asyncio.run(route.answer(asked)).status == 504


def test_warnings_are_cut_where_the_api_server_would_cut_them() -> None:
    told = server_of(rule("long", enforcement="warn", message="x" * 400)).review("/validate-pod")
    (warning,) = told["warnings"]
    assert len(warning) == 250 and warning.endswith("…")
