"""Rules as an API server's own policies: about random pods it says what the webhook's code says, to the letter."""

import time
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from ruamel.yaml import YAML

from koordpolicy.graph import RuleGraph
from koordpolicy.manager.native.rules import native_rules
from koordpolicy.manager.webhooks.rules import Rules
from tests.integration.webhooks.native_pods import CLASSES, LABELS, RUNTIME_CLASS, pods
from tests.parts.apiserver import Access, ApiServer
from tests.parts.deployed import apply
from tests.parts.fixtures import need
from tests.vectors.policies import document, graph

PROBES = {
    one["name"]: one["message"]
    for one in YAML(typ="safe").load(Path(__file__).with_name("native_rules.yaml"))
}
ELSEWHERE, PACK = "elsewhere", "pack"
_TRY = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example asks a server many times
)


def probe(name: str, message: str) -> dict[str, Any]:
    match = {"namespaces": {"matchLabels": {"rule": name}}}
    return document("AdmissionRule", name, {"match": match, "require": False, "message": {"cel": message}})


EXTRA = (
    document(
        "AdmissionRule",
        "own-team",
        {
            "match": {"namespaces": {"matchLabels": {"rule": PACK}}, "pods": {"matchLabels": {"team": "a"}}},
            "enabled": {"cel": "pod.band != 'free'"},
            "require": {
                "cel": "pod.request.cpu <= cpu('2') && pod.containers.all(c, c.limit.memory >= c.request.memory)"
            },
        },
    ),
    document(
        "AdmissionRule",
        "guarded",
        {
            "match": {"condition": "pod.labels['team'] == 'b'"},
            "require": {"cel": "has(pod.priority) && pod.priority > 6000"},
            "reason": {"cel": "pod.labels[?'team'].orValue('') + '-low'"},
            "message": "a low priority",
        },
    ),
    document(
        "AdmissionRule",
        "few-rights",
        {
            "match": {"namespaces": {"matchLabels": {"rule": PACK}}},
            "require": {
                "cel": "pod.volumes.all(v, v.hostPath.?path.orValue('') != '/dev')"
                " && (pod.containers + pod.ephemeralContainers).all(c, !('NET_ADMIN' in c.securityContext.capabilities.add)"
                " && (c.securityContext.capabilities.drop.size() < 2 || has(c.securityContext.runAsUser)))"
                " && !pod.tolerations.exists(t, t.key == '' && !has(t.tolerationSeconds))"
            },
        },
    ),
)


@pytest.fixture(scope="module")
def policies() -> RuleGraph:
    return graph(*(probe(*one) for one in PROBES.items()), *EXTRA)


@pytest.fixture(scope="module")
def server(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory, policies: RuleGraph
) -> Iterator[Access]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with ApiServer(tmp_path_factory.mktemp("native")) as server:
        access = server.access
        for name, value in CLASSES.items():
            body = {"metadata": {"name": name}, "value": value}
            assert access.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)[0] == 201
        assert access.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", RUNTIME_CLASS)[0] == 201
        for name in (ELSEWHERE, PACK, *PROBES):
            labels = {} if name == ELSEWHERE else {"rule": name}
            namespace = {"metadata": {"name": name, "labels": labels}}
            assert access.request("POST", "/api/v1/namespaces", namespace)[0] == 201
        everywhere = {"key": "rule", "operator": "In", "values": [PACK]}
        found = {**native_rules(policies, (everywhere,)).policies}
        found.update({name: native_rules(policies, ()).policies[name] for name in PROBES})
        apply(access, [one.object() for one in found.values()])
        apply(access, [one.binding() for one in found.values()])
        for name in PROBES:
            _await_refusal(access, name, {})
        _await_refusal(access, PACK, {"scheduling.koordinator.sh/reserve-pod": "true"})
        yield access


def _await_refusal(access: Access, namespace: str, annotations: dict[str, str]) -> None:
    """The API server takes policies up in its own time."""
    pod = {
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    end = time.monotonic() + 60
    while _created(access, namespace, pod)[0] != 403:
        assert time.monotonic() < end, f"nothing is refused in {namespace}"
        time.sleep(0.1)


def _created(access: Access, namespace: str, pod: dict[str, Any]) -> tuple[int, Any]:
    """What would become of a pod."""
    return access.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)


def _said(answer: tuple[int, Any]) -> str:
    """Why something is refused by a policy; empty where it is not."""
    status, body = answer
    if status in (200, 201):
        return ""
    assert status == 403, body["message"]
    _, denied, text = body["message"].partition(" denied request: ")
    assert denied, body["message"]
    return str(text)


@cache
def _asked(policies: RuleGraph) -> tuple[Collection[str], Rules]:
    """The rules that an API server has, by name, and all of them as the webhook asks them."""
    return native_rules(policies, ()).policies, Rules(policies)


def _expected(
    policies: RuleGraph, operation: str, pod: dict[str, Any], old: dict[str, Any] | None, namespace: str
) -> set[str]:
    labels = {"rule": namespace, "kubernetes.io/metadata.name": namespace}
    known = {"metadata": {"name": namespace, "labels": labels}}
    native, rules = _asked(policies)
    broken = rules.violations(operation, pod, old, known, 0, "admin")
    return {" ".join(str(one).split("\n")).strip() for one in broken if one.rule in native}


def test_of_the_pack_only_what_reads_other_objects_stays(policies: RuleGraph) -> None:
    found = native_rules(policies, ())
    about_pods = [one for one in found.staying if "it is about" not in one.reason]
    assert [one.target for one in about_pods] == ["AdmissionRule/pod-quota-is-leaf"]
    assert set(PROBES) <= set(found.policies)


@_TRY
@given(pod=pods())
def test_creations(server: Access, policies: RuleGraph, pod: dict[str, Any]) -> None:
    status, made = _created(server, ELSEWHERE, pod)
    assume(status == 201)
    for namespace in (PACK, *PROBES):
        here = {**made, "metadata": {**made["metadata"], "namespace": namespace}}
        expected = _expected(policies, "CREATE", here, None, namespace)
        if namespace != PACK:
            expected = {one for one in expected if one.startswith(f"{namespace}: ")}
        said = _said(_created(server, namespace, pod))
        assert said in (expected or {""}), (namespace, made)


@_TRY
@given(before=LABELS, after=LABELS)
def test_updates(server: Access, policies: RuleGraph, before: dict[str, str], after: dict[str, str]) -> None:
    path = f"/api/v1/namespaces/{PACK}/pods"
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}],
        "priorityClassName": "between",
    }
    status, old = server.request(
        "POST", path, {"metadata": {"generateName": "p", "labels": before}, "spec": spec}
    )
    assume(status == 201)
    place = f"{path}/{old['metadata']['name']}"
    try:
        new = {**old, "metadata": {**old["metadata"], "labels": after}}
        expected = _expected(policies, "UPDATE", new, old, PACK)
        assert _said(server.request("PUT", f"{place}?dryRun=All", new)) in (expected or {""}), (before, after)
    finally:
        server.request("DELETE", f"{place}?gracePeriodSeconds=0")
