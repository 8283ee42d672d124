"""Recommendations as they run in a cluster: a manager with its shipped role, on a real API server."""

import io
import json
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.integration.runtime.managers import NODE, Site, make_site
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

OFTEN = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Recommendation
metadata: {name: often}
spec:
  publish: {interval: 1s}
  checkpoint: {interval: 1s}
"""
PODS = "/api/v1/namespaces/default/pods"
RECOMMENDATION = "/apis/analysis.koordinator.sh/v1alpha1/namespaces/default/recommendations/web"
METRIC = f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{NODE}/status"
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "app", "image": "i"}]},
}
WORKLOAD: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}


@pytest.fixture
def site(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Site]:
    need(pytestconfig, "etcd", "kube-apiserver")
    folder = tmp_path / "server"
    folder.mkdir()
    with DeployedServer(folder) as server:
        site = make_site(server.access, tmp_path)
        site.write("often.yaml", OFTEN)
        _deploy(site)
        yield site


def _ask(site: Site, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    status, answer = site.access.request(method, path, body)
    assert status < 300, answer
    return dict(answer)


def _deploy(site: Site) -> None:
    """A Deployment with its ReplicaSet and a running pod, as their controllers leave them, and a Recommendation."""
    apps = "/apis/apps/v1/namespaces/default"
    made = _ask(site, "POST", f"{apps}/deployments", {"metadata": {"name": "web"}, "spec": WORKLOAD})
    metadata: dict[str, Any] = {"name": "web-1", "ownerReferences": [_owner("Deployment", made)]}
    made = _ask(site, "POST", f"{apps}/replicasets", {"metadata": metadata, "spec": WORKLOAD})
    account = "/api/v1/namespaces/default/serviceaccounts"
    site.eventually(lambda: site.access.request("GET", "/api/v1/namespaces/default")[0] == 200, "a namespace")
    site.access.request("POST", account, {"metadata": {"name": "default"}})
    metadata = {"name": "web-1-a", "labels": {"app": "web"}, "ownerReferences": [_owner("ReplicaSet", made)]}
    spec = {**TEMPLATE["spec"], "nodeName": NODE, "automountServiceAccountToken": False}
    _ask(site, "POST", PODS, {"metadata": metadata, "spec": spec})
    _ask(site, "PATCH", f"{PODS}/web-1-a/status", {"status": {"phase": "Running"}})
    target = {"type": "workload", "workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    _ask(
        site,
        "POST",
        RECOMMENDATION.rpartition("/")[0],
        {
            "apiVersion": "analysis.koordinator.sh/v1alpha1",
            "kind": "Recommendation",
            "metadata": {"name": "web"},
            "spec": {"target": target},
        },
    )


def _owner(kind: str, made: dict[str, Any]) -> dict[str, Any]:
    metadata = made["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def _report(site: Site, cpu: str) -> None:
    usage = {"resources": {"cpu": cpu, "memory": "1Gi"}}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    pods = [{"namespace": "default", "name": "web-1-a", "podUsage": usage}]
    _ask(
        site,
        "PATCH",
        METRIC,
        {"status": {"updateTime": now, "nodeMetric": {"nodeUsage": usage}, "podsMetric": pods}},
    )


def _found(site: Site) -> dict[str, Any]:
    return _ask(site, "GET", RECOMMENDATION)


def _targets(site: Site) -> dict[str, Any]:
    listed = _found(site).get("status", {}).get("podStatus", {}).get("containerStatuses", [])
    return {one["containerName"]: one["resources"] for one in listed}


def _history(site: Site) -> dict[str, Any]:
    source = _found(site)["metadata"].get("annotations", {}).get("koordpolicy.io/usage-history", "{}")
    return dict(json.loads(source))


def test_it_is_recommended_what_was_used_and_the_next_leader_goes_on(site: Site) -> None:
    def reported_until(what: str, cpu: str, holds: Any) -> None:
        def once() -> bool:
            _report(site, cpu)
            time.sleep(0.5)
            return bool(holds())

        site.eventually(once, what)

    with site.manager("m1") as manager:
        reported_until(
            "it is recommended", "500m", lambda: _targets(site).get("app", {}).get("cpu") == "593m"
        )
        conditions = {one["type"]: one["status"] for one in _found(site)["status"]["conditions"]}
        assert conditions == {"NoObjectsMatched": "False", "LowConfidence": "True"}
        bounds = json.loads(_found(site)["metadata"]["annotations"]["koordpolicy.io/recommended-bounds"])
        assert bounds["app"]["lower"]["cpu"] == bounds["app"]["upper"]["cpu"] == "593m"
        out = io.StringIO()
        config = str(site.access.kubeconfig())
        assert main(["recommend", "--kubeconfig", config, "-n", "default"], Terminal(out, io.StringIO())) == 0
        assert ["Deployment/web", "app", "cpu", "-", "593m", "593m", "593m", "-", "*"] in [
            line.split() for line in out.getvalue().splitlines()
        ]
        reported_until("the history is kept", "500m", lambda: "app" in _history(site))
        since = _history(site)["app"]["since"]
        assert manager.status["containers"] == 1
        manager.running.signal(signal.SIGKILL)
    with site.manager("m2"):
        reported_until("the next goes on", "4", lambda: int(_targets(site)["app"]["cpu"].rstrip("m")) > 4000)
        reported_until(
            "it keeps the history", "4", lambda: len(_history(site)["app"]["cpu"]["bucketWeights"]) == 2
        )
        assert _history(site)["app"]["since"] == since
        _ask(site, "DELETE", RECOMMENDATION)
