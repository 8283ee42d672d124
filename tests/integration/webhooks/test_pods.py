"""Pods as kubectl and controllers see them, on a real API server, with authentication, RBAC and the shipped role."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.webhooks.site import WebhookSite, make_webhook_site, pod, policy
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import install
from tests.parts.fixtures import need

BAND = {"metadata": {"name": "koord-batch"}, "value": 5000}


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver", "kubectl")
    with ApiServer(tmp_path_factory.mktemp("webhooks")) as server:
        install(server.access)
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
