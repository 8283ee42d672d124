"""Pods and their quotas on a real API server: what many clients create at once is counted while others write to the quota."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from koordpolicy.model.quota import read_quota
from tests.integration.webhooks.site import WebhookSite, make_webhook_site, pod, policy
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

QUOTAS = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas"
LIMIT = 9


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver", "kubectl")
    with DeployedServer(tmp_path_factory.mktemp("quotas")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> WebhookSite:
    return make_webhook_site(server.access, tmp_path)


@pytest.mark.soak
def test_what_is_created_at_once_never_exceeds_a_quota(site: WebhookSite) -> None:
    admission = {"enabled": True, "retries": 20, "retryJitter": "20ms"}
    site.write("quotas.yaml", policy("QuotaTree", "counted", {"admission": admission}))
    with site.serving("m1"):
        quotas = ["left", "right"]
        for name in quotas:
            quota = {
                "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
                "kind": "ElasticQuota",
                "metadata": {"name": name},
                "spec": {"max": {"cpu": str(LIMIT), "memory": "1Ti"}},
            }
            assert site.access.request("POST", QUOTAS, quota)[0] == 201

        def create(at: int) -> tuple[int, str]:
            label = {"quota.scheduling.koordinator.sh/name": quotas[at % 2]}
            code, answer = site.create(pod(f"p{at}", label))
            return code, str(answer.get("message", ""))

        def counts() -> bool:
            """Whether the API server asks, and the manager knows the quotas."""
            entries = [one["name"] for one in site.entries("validating")]
            return "admit-pod-to-quota.koordpolicy.io" in entries and all(
                "exceeded quota"
                in str(site.create(pod("huge", {"quota.scheduling.koordinator.sh/name": name}, **HUGE))[1])
                for name in quotas
            )

        site.eventually(counts, "quotas that are known")

        def disturb(at: int) -> int:
            """Somebody else writes to a quota."""
            mark = {"metadata": {"annotations": {"mark": str(at)}}}
            return site.access.request("PATCH", f"{QUOTAS}/{quotas[at % 2]}", mark)[0]

        with ThreadPoolExecutor(16) as clients, ThreadPoolExecutor(2) as others:
            disturbed = others.map(disturb, range(40))
            answers = list(clients.map(create, range(48)))
            assert set(disturbed) == {200}
        for side in (0, 1):
            said = answers[side::2]
            assert [code for code, _ in said].count(201) == LIMIT, said
            assert all("exceeded quota" in message for code, message in said if code != 201), said
            quota = site.access.request("GET", f"{QUOTAS}/{quotas[side]}")[1]
            assert read_quota(quota).child_request == {"cpu": LIMIT * 1000, "memory": LIMIT << 30}


HUGE = {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1000"}}}]}
