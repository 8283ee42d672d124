"""Pods as kubectl and controllers see them, on a real API server, with authentication, RBAC and the shipped role."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.webhooks.site import WebhookSite, make_webhook_site, pod, policy
from tests.parts.apiserver import ApiServer
from tests.parts.controllers import controller_manager
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

BAND = {"metadata": {"name": "koord-batch"}, "value": 5000}


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver", "kubectl")
    with DeployedServer(tmp_path_factory.mktemp("webhooks")) as server:
        server.access.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", BAND)
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> WebhookSite:
    return make_webhook_site(server.access, tmp_path)


PROFILE = policy(
    "ColocationProfile",
    "batch",
    {
        "match": {"pods": {"matchLabels": {"app": "spark"}}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "schedulerName": "koord-scheduler",
        "labels": {"drawn": "in"},
    },
)


def test_a_bare_pod_is_changed_refused_and_warned_of(site: WebhookSite) -> None:
    site.write("batch.yaml", PROFILE)
    site.write(
        "team.yaml",
        policy(
            "AdmissionRule",
            "team",
            {"require": {"cel": "'team' in pod.labels"}, "message": "say whose it is", "enforcement": "warn"},
        ),
    )
    with site.serving("m1"):
        code, out, err = site.kubectl(
            "apply", "-o", "json", "-f", "-", given=json.dumps(pod("a", {"app": "spark"}))
        )
        assert code == 0, err
        made = json.loads(out)
        assert made["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE"
        assert made["spec"]["containers"][0]["resources"]["requests"] == {
            "kubernetes.io/batch-cpu": "1k",
            "kubernetes.io/batch-memory": "1Gi",
        }
        assert (made["spec"]["priority"], made["spec"]["schedulerName"]) == (5000, "koord-scheduler")
        assert "Warning: team: say whose it is" in err
        code, out, err = site.kubectl(
            "apply", "-f", "-", given=json.dumps(pod("b", {"koordinator.sh/qosClass": "BE", "team": "x"}))
        )
        assert code == 1
        assert "denied the request: be-priority-forbidden" in err, err
        assert "Warning" not in err


def test_profiles_of_koordinator_apply_beside_policies(site: WebhookSite) -> None:
    def labels(name: str) -> dict[str, str]:
        status, made = site.create(pod(name, {"app": "presto"}))
        assert status == 201, made
        site.access.request("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0")
        return dict(made["metadata"]["labels"])

    path = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles"
    profile = {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": "presto"},
        "spec": {
            "selector": {"matchLabels": {"app": "presto"}},
            "qosClass": "BE",
            "priorityClassName": "koord-batch",
        },
    }
    site.write("batch.yaml", PROFILE)
    assert site.access.request("POST", path, profile)[0] == 201
    with site.serving("m1"):
        assert labels("first") == {"app": "presto", "koordinator.sh/qosClass": "BE"}
        change = {"spec": {"qosClass": "LS", "priorityClassName": None, "labels": {"by": "object"}}}
        assert site.access.request("PATCH", f"{path}/presto", change)[0] == 200
        site.eventually(
            lambda: labels("second") == {"app": "presto", "koordinator.sh/qosClass": "LS", "by": "object"},
            "the profile as it is now",
        )
        assert site.access.request("DELETE", f"{path}/presto")[0] == 200
        site.eventually(lambda: labels("third") == {"app": "presto"}, "no profile any more")
        # The API server does not ask about such pods any more.
        site.eventually(
            lambda: "presto" not in json.dumps(site.entries("mutating")), "a configuration without it"
        )


def test_pods_of_a_deployment_are_changed_and_refused(site: WebhookSite, pytestconfig: pytest.Config) -> None:
    """Controllers create them: people see what became of them at the Deployment."""
    need(pytestconfig, "kube-controller-manager")
    site.write("batch.yaml", PROFILE)

    def deployment(name: str, labels: dict[str, str]) -> dict[str, Any]:
        made = pod("", labels)
        template = {"metadata": {"labels": labels}, "spec": made["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}

    def found(what: str, *more: str) -> dict[str, Any]:
        return dict(json.loads(site.kubectl("get", what, "-o", "json", *more)[1]))

    def failure() -> str:
        """What a Deployment says of pods that could not be created."""
        said = found("deployment/refused").get("status", {}).get("conditions", ())
        return "".join(one["message"] for one in said if one["type"] == "ReplicaFailure")

    with site.serving("m1"), controller_manager(site.access):
        for made in (
            deployment("changed", {"app": "spark", "of": "changed"}),
            deployment("refused", {"koordinator.sh/qosClass": "BE", "of": "refused"}),
        ):
            code, _, err = site.kubectl("apply", "-f", "-", given=json.dumps(made))
            assert code == 0, err
        site.eventually(lambda: len(found("pods", "-l", "of=changed")["items"]) == 2, "its pods")
        for one in found("pods", "-l", "of=changed")["items"]:
            assert one["metadata"]["labels"]["drawn"] == "in"
            assert one["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE"
            assert one["spec"]["containers"][0]["resources"]["requests"] == {
                "kubernetes.io/batch-cpu": "1k",
                "kubernetes.io/batch-memory": "1Gi",
            }
        site.eventually(lambda: "denied the request: be-priority-forbidden" in failure(), "a reason")
        assert found("pods", "-l", "of=refused")["items"] == []
