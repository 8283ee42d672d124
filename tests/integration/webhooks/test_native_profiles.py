"""Profiles as an API server's own policies: of random pods it makes what the webhook's code makes, whether that is asked too or not."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from ruamel.yaml import YAML

from koordpolicy.algorithms.profile import PriorityClass
from koordpolicy.graph import RuleGraph
from koordpolicy.manager.native.profiles import native_profiles
from koordpolicy.manager.webhooks.mutation import PodContext, mutate
from koordpolicy.manager.webhooks.profiles import KIND, Profiles
from tests.integration.webhooks.native_pods import CLASSES, RUNTIME_CLASS, pods
from tests.parts.apiserver import Access, ApiServer
from tests.parts.deployed import apply
from tests.parts.fixtures import need
from tests.vectors.policies import document, graph

CASES = {
    one["name"]: one["profiles"]
    for one in YAML(typ="safe").load(Path(__file__).with_name("native_profiles.yaml"))
}
ELSEWHERE, HERE = "elsewhere", "profile"
_CLASSES = {
    **{name: PriorityClass(name, value, "PreemptLowerPriority") for name, value in CLASSES.items()},
    "patient": PriorityClass("patient", 1234, "Never"),
}
_TRY = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example asks a server many times
)


@pytest.fixture(scope="module")
def policies() -> RuleGraph:
    documents = []
    for case, profiles in CASES.items():
        for name, spec in profiles.items():
            match = {**spec.get("match", {}), "namespaces": {"matchLabels": {HERE: case}}}
            documents.append(document(KIND, name, {**spec, "match": match}))
    return graph(*documents)


@pytest.fixture(scope="module")
def server(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory, policies: RuleGraph
) -> Iterator[Access]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with ApiServer(tmp_path_factory.mktemp("native")) as server:
        access = server.access
        for one in _CLASSES.values():
            body = {
                "metadata": {"name": one.name},
                "value": one.value,
                "preemptionPolicy": one.preemption_policy,
            }
            assert access.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)[0] == 201
        assert access.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", RUNTIME_CLASS)[0] == 201
        for name in (ELSEWHERE, *CASES):
            labels = {} if name == ELSEWHERE else {HERE: name}
            namespace = {"metadata": {"name": name, "labels": labels}}
            assert access.request("POST", "/api/v1/namespaces", namespace)[0] == 201
        found = native_profiles(policies, ({"key": HERE, "operator": "Exists"},))
        assert not found.staying
        assert found.announcer is not None
        native = (*found.policies.values(), found.announcer)
        apply(access, [one.object() for one in native])
        apply(access, [one.binding() for one in native])
        _await_all(access, policies)
        yield access


def _await_all(access: Access, policies: RuleGraph) -> None:
    """The API server takes policies up in its own time."""
    end = time.monotonic() + 60
    for team in ("a", "b", ""):
        labels = {"team": team} if team else {}
        container = {"name": "c", "image": "i", "resources": {"requests": {"kubernetes.io/batch-cpu": "1"}}}
        pod = {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": [container]}}
        made = _created(access, ELSEWHERE, pod)[1]
        for case in CASES:
            wanted = _compared(_created(access, ELSEWHERE, _mutated(policies, _submitted(made, case), case)))
            while (found := _compared(_created(access, case, pod))) != wanted:
                assert time.monotonic() < end, (case, found, wanted)
                time.sleep(0.1)


def _created(access: Access, namespace: str, pod: dict[str, Any]) -> tuple[int, Any]:
    """What would become of a pod."""
    return access.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)


def _submitted(made: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    """A pod as an API server hands it to those who may change it, of one that it would store."""
    metadata = {
        key: made["metadata"][key]
        for key in ("name", "labels", "annotations", "ownerReferences")
        if key in made["metadata"]
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made["spec"]}


def _compared(answer: tuple[int, Any]) -> object:
    """What is to be the same; of what is refused, that it is."""
    status, body = answer
    return _submitted(body) if status == 201 else status


def _mutated(policies: RuleGraph, pod: dict[str, Any], case: str) -> dict[str, Any]:
    """What the webhook makes of a pod."""
    namespace = {"metadata": {"name": case, "labels": {HERE: case, "kubernetes.io/metadata.name": case}}}
    state = PodContext(namespace, _CLASSES.get, 0)
    found = mutate(pod, Profiles(policies), policies, state, lambda: 0.0).pod
    return _submitted(dict(found))


@_TRY
@given(pod=pods())
def test_mutations(server: Access, policies: RuleGraph, pod: dict[str, Any]) -> None:
    status, made = _created(server, ELSEWHERE, pod)
    assume(status == 201)
    for case in CASES:
        by_webhook = _created(server, ELSEWHERE, _mutated(policies, _submitted(made, case), case))
        by_server = _created(server, case, pod)
        assert _compared(by_server) == _compared(by_webhook), (case, made, by_server[1])
        if by_server[0] == 201:  # what the webhook is asked about nevertheless, it leaves as it is
            again = _mutated(policies, _submitted(by_server[1], case), case)
            assert _compared(_created(server, ELSEWHERE, again)) == _compared(by_server), (case, made)
