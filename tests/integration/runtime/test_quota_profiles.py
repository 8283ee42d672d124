"""Root quotas that `koordpolicy manager` makes of ElasticQuotaProfile objects, with its shipped role, on a real API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runtime.managers import NODE, Site, make_site
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

PROFILES = "/apis/quota.koordinator.sh/v1alpha1/namespaces/default/elasticquotaprofiles"
QUOTAS = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas"
DOMAIN = "quota.scheduling.koordinator.sh/"
HALF = """\
apiVersion: koordpolicy.io/v1alpha1
kind: QuotaProfile
metadata: {name: half}
spec:
  interval: 1s
  min: {cel: "quotaProfile.total[?resource].orValue(amount(0)) / 2"}
"""


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("quotas")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    return make_site(server.access, tmp_path)


def _quota(site: Site) -> dict[str, Any]:
    status, quota = site.access.request("GET", f"{QUOTAS}/root-all")
    return quota if status == 200 else {}


def _cpu(site: Site) -> object:
    return _quota(site).get("spec", {}).get("min", {}).get("cpu")


def _unschedulable(site: Site) -> object:
    """The CPUs of the tree on which no pod can be placed, as written; None for none."""
    return json.loads(_quota(site)["metadata"]["annotations"][f"{DOMAIN}unschedulable-resource"]).get("cpu")


def test_a_profile_gets_its_root_quota_and_keeps_it(site: Site) -> None:
    spec = {"quotaName": "root-all", "nodeSelector": {}, "quotaLabels": {"team": "ai"}}
    profile = {
        "apiVersion": "quota.koordinator.sh/v1alpha1",
        "kind": "ElasticQuotaProfile",
        "metadata": {"name": "all"},
        "spec": spec,
    }
    status, answer = site.access.request("POST", PROFILES, profile)
    assert status == 201, answer
    with site.manager("m1") as manager:
        site.eventually(lambda: _cpu(site) == "100", "the quota is made")
        quota = _quota(site)
        labels = quota["metadata"]["labels"]
        assert {key.removeprefix(DOMAIN): value for key, value in labels.items() if key != f"{DOMAIN}tree-id"} == {
            "team": "ai",
            "profile": "all",
            "is-root": "true",
        }  # fmt: skip
        _, kept = site.access.request("GET", f"{PROFILES}/all")
        assert kept["metadata"]["labels"][f"{DOMAIN}tree-id"] == labels[f"{DOMAIN}tree-id"]
        site.write("half.yaml", HALF)
        site.eventually(lambda: _cpu(site) == "50", "another policy decides")
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        site.access.request("PATCH", f"/api/v1/nodes/{NODE}/status", ready)
        site.eventually(lambda: _unschedulable(site) is None, "the node is ready")
        site.access.request("PATCH", f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": True}})
        site.eventually(lambda: _unschedulable(site) == "100", "the node is cordoned")
        version = _quota(site)["metadata"]["resourceVersion"]
        looked = 'koordpolicy_reconcile_total{queue="quota_profiles",result="unchanged"}'
        before = manager.metric(looked) or 0
        site.eventually(lambda: (manager.metric(looked) or 0) >= before + 3, "it is looked at")
        assert _quota(site)["metadata"]["resourceVersion"] == version, "and nothing is written"
        site.access.request("DELETE", f"{QUOTAS}/root-all")
        site.eventually(lambda: _cpu(site) == "50", "the quota is made anew")


def test_a_quota_that_the_server_refuses_is_told_of_at_the_profile(site: Site) -> None:
    """A name that no object may have: the profile's definition does not look at it."""
    profile = {
        "apiVersion": "quota.koordinator.sh/v1alpha1",
        "kind": "ElasticQuotaProfile",
        "metadata": {"name": "odd"},
        "spec": {"quotaName": "Not A Name", "nodeSelector": {}},
    }
    status, answer = site.access.request("POST", PROFILES, profile)
    assert status == 201, answer

    def told() -> bool:
        _, found = site.access.request("GET", "/api/v1/namespaces/default/events")
        return any(
            (one["reason"], one["involvedObject"]["kind"], one["involvedObject"]["name"])
            == ("CreateQuotaFailed", "ElasticQuotaProfile", "odd")
            for one in found["items"]
        )

    with site.manager("m1") as manager:
        site.eventually(told, "an Event at the profile")
        assert (
            manager.metric('koordpolicy_reconcile_total{queue="quota_profiles",result="failed"}') or 0
        ) < 5
    site.access.request("DELETE", f"{PROFILES}/odd")
