"""The descheduler as a real process on a real API server: who goes, who stays, and what is said of it."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.integration.scheduler.sites import Scheduler, Site, make_site
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need
from tests.parts.processes import Running, free_port

LOAD = {"high": {"cpu": "70%"}, "low": {"cpu": "40%"}, "anomaly": {"rounds": 1}}
PODS = ("a", "b", "c", "d")
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("descheduler")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    """A node of 4 CPUs with four pods that use 900m each, and one without any."""
    here = make_site(server.access, tmp_path)
    here.do("DELETE", BUDGETS)
    for name in ("full", "empty"):
        here.node(name)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    for name in PODS:
        here.pod(
            name,
            metadata={"labels": {"app": "web", "pod": name}, "ownerReferences": [owner]},
            nodeName="full",
            terminationGracePeriodSeconds=0,
        )
        # Disruption budgets are about pods that run.
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        here.do("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", {"status": status})
    _report(here, PODS)
    strategy = {"name": "LowNodeLoad", "enabled": True, "load": LOAD}
    _say(here, {"interval": "1s", "migrate": False, "strategies": [strategy]})
    return here


def _say(site: Site, spec: dict[str, Any]) -> None:
    document = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "Descheduling",
        "metadata": {"name": "koord-descheduler"},
        "spec": spec,
    }
    site.write("descheduling.yaml", json.dumps(document))


def _report(site: Site, pods: tuple[str, ...], cpu: str = "900m") -> None:
    """Both nodes report what they use now."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for node in ("full", "empty"):
        site.measured(node, "0")
        used = pods if node == "full" else ()
        metrics = [
            {
                "namespace": "default",
                "name": name,
                "podUsage": {"resources": {"cpu": cpu, "memory": "64Mi"}},
            }
            for name in used
        ]
        site.do(
            "PATCH",
            f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{node}/status",
            {"status": {"updateTime": now, "podsMetric": metrics}},
        )


def _command(site: Site, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "koordpolicy.cli", "descheduler", "--policies", str(site.policies),
        "--kubeconfig", str(site.access.kubeconfig("koordpolicy-descheduler")), *more,
    ]  # fmt: skip


@contextmanager
def descheduler(site: Site, name: str, *more: str) -> Iterator[Scheduler]:
    port = free_port()
    command = _command(site, "--instance", name, "--http", f"127.0.0.1:{port}", *more)
    with Running(
        command, site.folder / f"{name}.log", environment={"PYTHONPATH": str(REPOSITORY)}
    ) as running:
        one = Scheduler(running, port, name)
        site.schedulers.append(one)
        try:
            running.ready(lambda: one.read("/readyz")[0] == 200, 60.0)
            yield one
        finally:
            site.schedulers.remove(one)


def test_one_round_says_who_would_go_and_lets_nobody_go(site: Site) -> None:
    done = subprocess.run(
        _command(site, "--once", "--dry-run", "--output", "json"),
        capture_output=True, text=True, timeout=120, check=False, env={"PYTHONPATH": str(REPOSITORY), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (move,) = found["moves"]
    assert (move["from"], move["to"]) == ("full", "empty")
    assert move["reason"] == "node is overutilized, node cpu usage(90.00%)>threshold(70.00%)"
    assert found["strategies"][0]["relieved"]["full"]["cpu"] == {"before": 90.0, "after": 67.5}
    assert sorted(site.pods()) == list(PODS)


def test_a_full_node_is_relieved_within_a_budget_and_over_a_kill(site: Site) -> None:
    site.do("POST", BUDGETS, {
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
    })  # fmt: skip
    # Nobody else counts for budgets here.
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 4,
        "desiredHealthy": 3,
        "expectedPods": 4,
    }
    site.do("PATCH", f"{BUDGETS}/web/status", {"status": status})
    with descheduler(site, "d1") as first:
        site.eventually(lambda: len(site.pods()) == 3, "one pod goes")
        (gone,) = set(PODS) - set(site.pods())
        site.eventually(
            lambda: "Descheduled" in {reason for _, reason, _, _ in site.events()}, "people hear of it"
        )
        message = next(text for _, reason, text, _ in site.events() if reason == "Descheduled")
        assert message.startswith(
            'Pod evicted from node "full" by the reason "node is overutilized, node cpu'
        )
        first.running.kill()
    assert gone not in site.pods()
    with descheduler(site, "d2") as second:
        # The budget is used up, though the old report still says that the node is too full.
        site.eventually(lambda: second.status.get("rounds"), "the next one does its rounds")
        assert len(site.pods()) == 3
        left = tuple(sorted(site.pods()))
        _report(site, left)
        site.do("PATCH", f"{BUDGETS}/web/status", {"status": {"disruptionsAllowed": 1}})
        before = second.metric(
            'koordpolicy_descheduler_rounds_total{profile="koord-descheduler",result="done"}'
        )
        site.eventually(
            lambda: (
                second.metric(
                    'koordpolicy_descheduler_rounds_total{profile="koord-descheduler",result="done"}'
                )
                > before + 2
            ),
            "more rounds are over",
        )
        assert tuple(sorted(site.pods())) == left, "a node that is below its threshold gives nobody away"


def test_a_node_that_flaps_moves_nothing(site: Site) -> None:
    strategy = {"name": "LowNodeLoad", "enabled": True, "load": {**LOAD, "anomaly": {"rounds": 6}}}
    _say(site, {"interval": "1s", "migrate": False, "strategies": [strategy]})
    done = 'koordpolicy_descheduler_rounds_total{profile="koord-descheduler",result="done"}'
    _report(site, PODS, "100m")
    with descheduler(site, "d1") as one:
        site.eventually(lambda: one.metric(done) > 0, "it does its rounds")
        # In all it is too full in more rounds than are needed, and never in so many that follow each other.
        for _ in range(3):
            for cpu in ("900m", "100m"):
                _report(site, PODS, cpu)
                before = one.metric(done)
                site.eventually(lambda before=before: one.metric(done) >= before + 3, "rounds see it")  # type: ignore[misc]
                assert sorted(site.pods()) == list(PODS)
        _report(site, PODS)
        site.eventually(lambda: len(site.pods()) < len(PODS), "one that stays too full gives pods away")


_WRITTEN = (
    "/api/v1/events",
    "/apis/koordpolicy.io/v1alpha1/policyrevisions",
    "/apis/coordination.k8s.io/v1/leases",
)


def _once(site: Site, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(site, "--once", *more),
        capture_output=True, text=True, timeout=60, check=False, env={"PYTHONPATH": str(REPOSITORY), "PATH": ""},
    )  # fmt: skip


def _stored(site: Site) -> dict[str, dict[str, str]]:
    """What there is of what processes write, by UID with its version; without what the API server keeps of itself."""
    return {
        path: {
            one["metadata"]["uid"]: one["metadata"]["resourceVersion"]
            for one in site.do("GET", path)["items"]
            if not one["metadata"]["name"].startswith("apiserver-")
        }
        for path in _WRITTEN
    }


@pytest.mark.parametrize("broken", [False, True])
def test_a_dry_run_writes_nothing_and_serves_nothing(site: Site, broken: bool) -> None:
    if broken:
        site.write("other.yaml", "kind: [")
    before = _stored(site)
    with socket.socket() as taken:  # as by a manager on the same machine
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # then somebody else serves there
            taken.bind(("127.0.0.1", 8080))
            taken.listen()
        done = _once(site, "--dry-run")
    assert done.returncode == int(broken), done.stderr
    assert ("pod to move" in done.stdout) != broken
    assert _stored(site) == before
    assert sorted(site.pods()) == list(PODS)


def test_one_round_shows_nobody_its_revision_and_ends_where_tests_fail(site: Site) -> None:
    revisions = _stored(site)[_WRITTEN[1]]
    test = {
        "apiVersion": "koordpolicy.io/v1alpha1", "kind": "PolicyTest", "metadata": {"name": "t"},
        "spec": {"cases": [{
            "name": "no", "target": "Descheduling/koord-descheduler.enabled", "expect": {"value": False},
        }]},
    }  # fmt: skip
    site.write("test.yaml", json.dumps(test))
    done = _once(site)
    assert done.returncode == 1, done.stderr
    assert "is rejected" in done.stderr and "descheduler ends: " in done.stderr
    assert sorted(site.pods()) == list(PODS)
    (site.policies / "test.yaml").unlink()
    done = _once(site)
    assert done.returncode == 0, done.stderr
    assert len(site.pods()) < len(PODS)
    assert _stored(site)[_WRITTEN[1]] == revisions
