"""Controllers of `koordpolicy manager` while the way to the API server is silent, refused or cut: they end where policy wants them."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runtime.managers import NODE, Site, make_site, share
from tests.parts.apiserver import ApiServer, ServerProxy
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

PROFILES = "/apis/quota.koordinator.sh/v1alpha1/namespaces/default/elasticquotaprofiles"
QUOTA = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas/root"
SLO = "/apis/slo.koordinator.sh/v1alpha1/nodeslos"


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("networks")) as server:
        profile = {
            "apiVersion": "quota.koordinator.sh/v1alpha1",
            "kind": "ElasticQuotaProfile",
            "metadata": {"name": "all"},
            "spec": {"quotaName": "root", "nodeSelector": {}},
        }
        assert server.access.request("POST", PROFILES, profile)[0] == 201
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    return make_site(server.access, tmp_path)


def _silent(proxy: ServerProxy) -> None:
    proxy.hold()
    time.sleep(25)  # longer than a lease lasts
    proxy.release()


def _refused(proxy: ServerProxy) -> None:
    proxy.refuse()
    time.sleep(5)
    proxy.accept()


def _cut(proxy: ServerProxy) -> None:
    for _ in range(20):
        proxy.cut()
        time.sleep(0.2)


@pytest.mark.parametrize("trouble", [_silent, _refused, _cut], ids=["silent", "refused", "cut"])
@pytest.mark.soak
def test_what_changed_meanwhile_is_written_afterwards(
    trouble: Callable[[ServerProxy], None], site: Site, server: ApiServer
) -> None:
    def read(path: str) -> dict[str, Any]:
        status, found = site.access.request("GET", path)
        return found if status == 200 else {}

    def cpu() -> object:
        return read(QUOTA).get("spec", {}).get("min", {}).get("cpu")

    with server.proxy() as proxy:
        through = str(proxy.kubeconfig("koordpolicy-manager"))
        with site.manager("m1", "--kubeconfig", through) as manager:
            site.eventually(lambda: site.offered() == 60_000, "the pack decides")
            site.eventually(lambda: cpu() == "100", "the quota is as large as the node")
            site.write("share.yaml", share(30))
            status = {"status": {"allocatable": {"cpu": "80"}}}
            assert site.access.request("PATCH", f"/api/v1/nodes/{NODE}/status", status)[0] == 200
            site.access.request("DELETE", f"{SLO}/{NODE}")
            trouble(proxy)
            assert manager.read("/healthz")[0] == 200
            # 100 CPUs less 70 %, less the 20 that the kubelet keeps now.
            site.eventually(lambda: site.offered() == 10_000, "the node follows")
            site.eventually(lambda: cpu() == "80", "the quota follows")
            site.eventually(lambda: read(f"{SLO}/{NODE}"), "what a koordlet reads is there again")
            assert manager.metric("koordpolicy_event_loop_held_total") in (None, 0)
            assert manager.running.stop(30) == 0
