"""Migrations on a real API server with controllers and kwok: room is there before a pod goes, and budgets hold, over kills.

With `KOORDPOLICY_MIGRATIONS=full` there are twenty kills.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.descheduler.test_process import descheduler
from tests.integration.scheduler.sites import Site, make_site
from tests.parts.apiserver import ApiServer
from tests.parts.controllers import FAKE_NODE, controller_manager, kwok
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

JOBS: Final = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs"
ROOMS: Final = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
METRICS: Final = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_KILLS, _PODS = (20, 48) if os.environ.get("KOORDPOLICY_MIGRATIONS") == "full" else (3, 12)
_CORES: Final = _PODS * 4 // 3
"""Of each node; a pod takes one and uses it."""
_STAY: Final = _CORES // 2
"""As many pods may stay on a node: its threshold is half of what it has."""
_AWAY: Final = 2
"""Pods that may be away at once."""


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver", "kube-controller-manager", "kwok")
    with (
        DeployedServer(tmp_path_factory.mktemp("migrations")) as server,
        kwok(server.access),
        controller_manager(server.access),
    ):
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    """A Deployment all of whose pods are on the first of three nodes."""
    here = make_site(server.access, tmp_path)
    for path in (JOBS, ROOMS, DEPLOYMENTS, BUDGETS):
        here.do("DELETE", path)
    here.eventually(lambda: not here.pods(), "what an earlier test left is gone")
    _node(here, "full")
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    spec = {"schedulerName": "koord-scheduler", "terminationGracePeriodSeconds": 1, "containers": [container]}
    labels = {"app": "web"}
    here.do(
        "POST",
        DEPLOYMENTS,
        {
            "metadata": {"name": "web"},
            "spec": {
                "replicas": _PODS,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        },
    )
    budget = {"maxUnavailable": _AWAY, "selector": {"matchLabels": labels}}
    here.do("POST", BUDGETS, {"metadata": {"name": "web"}, "spec": budget})
    with here.scheduler("first", "--no-leader-elect"):
        here.eventually(lambda: len(_ready(here.pods())) == _PODS, "all pods run")
    for name in ("empty-0", "empty-1"):
        _node(here, name)
    _say(here, "Descheduling", "koord-descheduler", interval="1s", strategies=[_STRATEGY])
    _say(here, "Migration", "default", frequency={"workload": {"period": "0s"}}, retryAfter="1s")
    return here


_STRATEGY: Final = {
    "name": "LowNodeLoad",
    "enabled": True,
    "load": {"high": {"cpu": "50%"}, "low": {"cpu": "40%"}, "anomaly": {"rounds": 1}},
}


def _node(site: Site, name: str) -> None:
    site.node(name, {"cpu": str(_CORES), "memory": "256Gi", "pods": "200"})
    site.do("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"annotations": FAKE_NODE}})


def _say(site: Site, kind: str, name: str, **spec: Any) -> None:
    document = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    site.write(f"{kind}.yaml", json.dumps(document))


def _ready(pods: dict[str, dict[str, Any]]) -> list[str]:
    return [
        name
        for name, one in pods.items()
        if "deletionTimestamp" not in one["metadata"]
        and any(
            is_so["type"] == "Ready" and is_so["status"] == "True"
            for is_so in one.get("status", {}).get("conditions", ())
        )
    ]


@dataclass
class Observer:
    """Looks at everything again and again; what must hold at each moment holds at each look."""

    site: Site
    uids: dict[str, str] = field(default_factory=dict)
    """The pods that were seen, by UID with their node."""
    available: set[str] = field(default_factory=set)
    """Jobs whose room was seen to be there, or taken."""

    def look(self) -> dict[str, dict[str, Any]]:
        """The jobs by name."""
        jobs = {one["metadata"]["name"]: one for one in self.site.do("GET", JOBS)["items"]}
        rooms = {one["metadata"]["name"]: one for one in self.site.do("GET", ROOMS)["items"]}
        pods = self.site.pods()
        assert len(_ready(pods)) >= _PODS - _AWAY, "no more pods are away than the budget allows"
        there = {
            one["metadata"]["uid"] for one in pods.values() if "deletionTimestamp" not in one["metadata"]
        }
        under_way = Counter(
            one["spec"]["podRef"].get("uid")
            for one in jobs.values()
            if one.get("status", {}).get("phase") in (None, "", "Pending", "Running")
        )
        assert max(under_way.values(), default=0) <= 1, "no pod is migrated twice at once"
        for one in jobs.values():
            uid = one["metadata"]["uid"]
            room = rooms.get(uid, {}).get("status", {})
            if room.get("phase") in ("Available", "Succeeded") and room.get("nodeName"):
                assert room["nodeName"] != "full"
                self.available.add(uid)
            if one["spec"]["podRef"]["uid"] not in there:
                assert uid in self.available, "room is there before the pod goes"
        self._report(pods)
        return jobs

    def over(self) -> bool:
        """Whether the full node is relieved, and nothing is under way."""
        jobs = self.look()
        return (
            all(one.get("status", {}).get("phase") in ("Succeeded", "Failed") for one in jobs.values())
            and self.on_full() <= _STAY
            and len(_ready(self.site.pods())) == _PODS
        )

    def on_full(self) -> int:
        return sum(node == "full" for node in self.site.where().values())

    def running(self) -> bool:
        """Whether a migration is in its middle."""
        return any(one.get("status", {}).get("phase") == "Running" for one in self.look().values())

    def _report(self, pods: dict[str, dict[str, Any]]) -> None:
        """Every pod uses a core."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for node in ("full", "empty-0", "empty-1"):
            self.site.do(
                "POST", METRICS,
                {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": node}, "spec": {}},
                also=409,
            )  # fmt: skip
            used = [name for name, one in pods.items() if one["spec"].get("nodeName") == node]
            usage = {"resources": {"cpu": str(len(used)), "memory": "1Gi"}}
            metrics = [
                {
                    "namespace": "default",
                    "name": name,
                    "podUsage": {"resources": {"cpu": "1", "memory": "64Mi"}},
                }
                for name in used
            ]
            status = {
                "updateTime": now,
                "nodeMetric": {
                    "nodeUsage": usage,
                    "systemUsage": {"resources": {"cpu": "0", "memory": "0"}},
                },
                "podsMetric": metrics,
            }
            self.site.do("PATCH", f"{METRICS}/{node}/status", {"status": status})


def _check(seen: Observer, before: set[str]) -> None:
    """At the end: every pod that went has a migration that succeeded, and nothing is left over."""
    jobs = seen.look()
    after = {one["metadata"]["uid"] for one in seen.site.pods().values()}
    gone = before - after
    succeeded = [one for one in jobs.values() if one["status"]["phase"] == "Succeeded"]
    assert {one["spec"]["podRef"]["uid"] for one in succeeded} == gone, "who went was migrated, and once"
    assert len(succeeded) == len(gone)
    for one in jobs.values():
        assert one["status"]["phase"] == "Succeeded" or one["spec"]["podRef"]["uid"] in after, one["status"]
    assert {one["status"]["podRef"]["name"] for one in succeeded} <= set(seen.site.pods())
    rooms = seen.site.do("GET", ROOMS)["items"]
    assert all(one["status"]["phase"] in ("Succeeded", "Failed") for one in rooms), (
        "no room is kept for nobody"
    )


@pytest.mark.soak
def test_a_full_node_is_relieved_with_room_before_each_pod_goes_over_kills(site: Site) -> None:
    draw = random.Random(11)
    seen = Observer(site)
    seen.look()
    before = {one["metadata"]["uid"] for one in site.pods().values()}
    interrupted = 0
    for kill in range(_KILLS):
        with (
            site.scheduler(f"s{kill}", "--no-leader-elect", ready=False) as scheduler,
            descheduler(site, f"d{kill}", "--no-leader-elect") as moving,
        ):
            site.eventually(lambda: seen.running() or seen.over(), "a migration is under way")
            time.sleep(draw.random())
            interrupted += seen.running()
            for one in draw.sample([moving, scheduler], draw.choice((1, 2))):
                one.running.kill()
            for _ in range(5):
                seen.look()
    with (
        site.scheduler("last", "--no-leader-elect"),
        descheduler(site, "last-moving", "--no-leader-elect"),
    ):
        site.eventually(seen.over, "the node is relieved, and all is done")
        _check(seen, before)
        told = {reason for _, reason, _, _ in site.events()}
    assert interrupted, "a kill that interrupts nothing shows nothing"
    assert "Descheduled" in told
