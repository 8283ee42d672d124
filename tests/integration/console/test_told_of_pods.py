"""The story of pods of a real API server: what admission made of them, what holds them back, what was told of them; with just the rights
that the console's roles give.
"""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from koordpolicy.agent.carrying_out import EVICTED
from koordpolicy.cli.console_beside import ROLE, read_beside
from koordpolicy.console.worlds.world import PodBackground
from koordpolicy.kube.api import Connection, connect
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, RUNS_ANNOTATION
from koordpolicy.model.time import time_text
from koordpolicy.runtime.clock import now_ns
from tests.integration.console.browser import Page
from tests.integration.console.console import console
from tests.integration.console.driving import Steps, axe, opened
from tests.parts.apiserver import Access
from tests.parts.deployed import DEPLOY, DeployedServer, manifests
from tests.parts.fixtures import need
from tests.roles.permissions import Permission, permissions_of

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
API = "apiVersion: koordpolicy.io/v1alpha1\n"
POLICIES = f"""{API}kind: PolicyBundle
metadata: {{name: ours}}
spec: {{extends: [koordinator]}}
---
{API}kind: ColocationProfile
metadata: {{name: spark}}
spec:
  match: {{pods: {{matchLabels: {{app: spark}}}}}}
  qosClass: BE
  band: batch
  labels: {{tier.koordinator.sh/now: silver}}
---
{API}kind: Isolation
metadata: {{name: be}}
spec: {{group: BE, cpu: {{enabled: true, identity: -1}}}}
---
{API}kind: MemoryEviction
metadata: {{name: mine}}
spec: {{enabled: true, threshold: 70%, bestEffort: {{enabled: true}}}}
"""


def do(server: Access, method: str, path: str, body: Any = None) -> Any:
    status, answer = server.request(method, path, body)
    assert status in (200, 201), answer
    return answer


def bind(server: Access, role: str) -> None:
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    body = {"metadata": {"name": f"nobody-{role}"}, "roleRef": reference, "subjects": [subject]}
    do(server, "POST", f"{RBAC}/clusterrolebindings", body)


def pod(name: str, labels: dict[str, str], *owners: dict[str, Any]) -> dict[str, Any]:
    amounts = {BATCH_CPU: "1000", BATCH_MEMORY: "1Gi"}
    container = {"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "metadata": {"name": name, "labels": labels, "ownerReferences": list(owners)},
        "spec": {"nodeName": "n1", "schedulerName": "koord-scheduler", "containers": [container]},
    }


def event(server: Access, about: dict[str, Any], component: str, reason: str, message: str) -> None:
    now = time_text(now_ns())
    body = {
        "metadata": {"generateName": "told-"},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": "Warning",
        "count": 3,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "n1",
    }
    do(server, "POST", "/api/v1/namespaces/default/events", body)


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A server of its own, since rights are the whole cluster's, with a node, a service of a ReplicaSet and batch work."""
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("told")) as started:
        one = started.access
        bind(one, "koordpolicy-snapshot")
        bind(one, ROLE)
        amounts = {"cpu": "10", "memory": "10Gi", "pods": "50", BATCH_CPU: "8000", BATCH_MEMORY: "8Gi"}
        do(
            one,
            "POST",
            "/api/v1/nodes",
            {"metadata": {"name": "n1"}, "status": {"capacity": amounts, "allocatable": amounts}},
        )
        _report(one)
        batch = {"metadata": {"name": "koord-batch"}, "value": 5000}
        do(one, "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", batch)
        labels = {"app": "spark"}
        template = {
            "metadata": {"labels": labels},
            "spec": pod("x", {})["spec"] | {"nodeName": ""},
        }
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        owner = do(
            one,
            "POST",
            "/apis/apps/v1/namespaces/default/replicasets",
            {"metadata": {"name": "spark"}, "spec": spec},
        )
        reference = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "spark",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        before = {**labels, "koordinator.sh/qosClass": "BE", "tier.koordinator.sh/now": "gold"}
        wanted = pod("spark-1", before, reference)
        wanted["spec"]["priorityClassName"] = "koord-batch"
        made = do(one, "POST", PODS, wanted)
        do(one, "PATCH", f"{PODS}/spark-1/status", {"status": {"phase": "Running"}})
        about = {"kind": "Pod", "name": "spark-1", "namespace": "default", "uid": made["metadata"]["uid"]}
        event(one, about, "koordpolicy-scheduler", "Scheduled", "Successfully assigned default/spark-1 to n1")
        event(one, about, "kubelet", "BackOff", f"pulls {HOSTILE}")
        event(
            one, {"kind": "Node", "name": "n1"}, "koordpolicy-agent", "KernelWriteFailed", "cpu.idle: refused"
        )
        gone = {"kind": "Pod", "name": "spark-0", "namespace": "default", "uid": "gone"}
        event(one, gone, "koordpolicy-agent", EVICTED, "evicted for BEMemoryEvict")
        yield one


def _report(server: Access) -> None:
    slo = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
    runs = json.dumps({"state": "Active", "revision": "c" * 40, "digest": "other"})
    kind = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric"}
    metadata = {"name": "n1", "annotations": {RUNS_ANNOTATION: runs}}
    do(server, "POST", slo, {**kind, "metadata": metadata, "spec": {}})
    status = {
        "updateTime": time_text(now_ns()),
        "nodeMetric": {"nodeUsage": {"resources": {"cpu": "6", "memory": "6Gi"}}},
        "podsMetric": [
            {
                "namespace": "default",
                "name": "spark-1",
                "podUsage": {"resources": {"cpu": "500m", "memory": "512Mi"}},
            }
        ],
        "bestEffort": {"allowed": {"cpu": "1500m"}},
    }
    do(server, "PATCH", f"{slo}/n1/status", {"status": status})


@pytest.fixture(scope="module")
def live(server: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The console by somebody who has its two roles and nothing else."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "koordpolicy.yaml").write_text(POLICIES, encoding="utf-8")
    flags = ("--live", "--every", "1s", "-p", str(folder), "--kubeconfig", str(server.kubeconfig("nobody")))
    with console(*flags) as address:
        yield address


def chapter(title: str) -> str:
    return f"[...document.querySelectorAll('.story > li')].find((one) => one.querySelector('h3').textContent === {title!r})"


def test_one_story_from_admission_to_what_was_told(live: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, live, "cluster/pod/default%2Fspark-1")
        webhook = await page.until(f"{chapter('Webhook')}?.innerText")
        assert "Admission sets " in webhook
        assert " places of it by spark" in webhook
        assert "Admitted today, it would be otherwise" in webhook
        differs = await page.ask(f"{chapter('Webhook')}.querySelector('[data-differs]').innerText")
        assert "gold" in differs
        assert "silver" in differs
        assert "qosClass" not in differs
        assert "priorityClassName" not in differs
        assert "the template of ReplicaSet spark" in webhook
        # The line of policy behind a field, by keys alone.
        await page.ask(f"{chapter('Webhook')}.querySelector('summary').focus()")
        await page.press("Enter")
        place = f"{chapter('Webhook')}.querySelector('.line')"
        await page.until(f"{place}?.checkVisibility()")
        assert (await page.ask(f"{place}.title")).startswith("koordpolicy.yaml:")
        await page.press("Tab", "Enter")
        here = await page.until("document.querySelector('dialog .here')?.innerText")
        assert "qosClass" in here or "tier" in here
        await page.press("Escape")

        agent = await page.ask(f"{chapter('Agent')}.innerText")
        assert f"Its agent decides by {'c' * 12}" in agent
        assert "what answers here may be another revision" in agent
        assert "these were held to 1.5" in agent
        holds = await page.ask(
            f"Object.fromEntries([...{chapter('Agent')}.querySelectorAll('[data-hold]')].map((one) => [one.dataset.hold, one.textContent]))"
        )
        assert "may use" in holds["CPU suppression"]
        assert "CPUSuppress.target" in holds["CPU suppression"]
        assert "main has 1 core by batch-resources." in holds["Quota"]
        assert "group identity is -1" in holds["Turns on CPUs"]
        assert "Isolation/BE.cpu.identity" in holds["Turns on CPUs"]
        assert "Not known here: " in holds["Turns on CPUs"]
        assert "it goes, as the only one" in holds["BEMemoryEvict"]

        told = await page.ask(f"{chapter('What was told')}.innerText")
        assert "scheduler Scheduled: Successfully assigned" in told
        assert "agent, about Node n1 KernelWriteFailed" in told
        assert HOSTILE in told
        assert "3 times" in told
        assert await page.ask("document.title") != "taken"
        for width, dark in ((1280, False), (390, True)):
            await page.size(width, 900, dark=dark)
            await page.ask(f"document.documentElement.dataset.theme = {'dark' if dark else 'light'!r}")
            await page.ask(
                "document.querySelectorAll('.story details').forEach((one) => { one.open = true; })"
            )
            assert await axe(page) == []
            assert await page.ask("document.documentElement.scrollWidth") == width
            wide = "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector('.panel'))"
            assert await page.ask(wide) <= 0

    drive(steps)


def test_a_pod_that_is_gone_is_told_of_by_its_events(live: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, live, "cluster/pod/default%2Fspark-0")
        lead = await page.until("document.querySelector('.panel .lead')?.innerText")
        assert lead.startswith("Evicted by its node at ")
        told = await page.ask(f"{chapter('What was told')}.innerText")
        assert "evicted for BEMemoryEvict" in told
        assert "MemoryEviction.threshold" in told
        assert await page.ask(f"{chapter('Webhook')} === undefined")
        assert await axe(page) == []

    drive(steps)


def beside(server: Access, name: str, owner: dict[str, Any]) -> PodBackground:
    """What somebody with the console's roles reads of a pod with that owner."""
    metadata = {"name": name, "namespace": "default", "uid": "u", "ownerReferences": [owner]}
    spec = {"nodeName": "n1", "containers": [{"name": "main"}]}
    picture = Snapshot(0, {"pods": [{"metadata": metadata, "spec": spec}]})

    async def read() -> PodBackground:
        connection = Connection.load(str(server.kubeconfig("nobody")), None, {})
        async with connect(connection, jitter=random.random, component="console") as cluster:
            return await read_beside(cluster, f"default/{name}", picture)

    return asyncio.run(read())


def role() -> dict[str, Any]:
    (found,) = [
        dict(one)
        for one in manifests(DEPLOY / "rbac")
        if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", ROLE)
    ]
    return found


KINDS = {
    "events": ("apps/v1", "ReplicaSet"),
    "replicationcontrollers": ("v1", "ReplicationController"),
    "replicasets.apps": ("apps/v1", "ReplicaSet"),
    "statefulsets.apps": ("apps/v1", "StatefulSet"),
    "daemonsets.apps": ("apps/v1", "DaemonSet"),
    "jobs.batch": ("batch/v1", "Job"),
}


@pytest.mark.parametrize("permission", sorted(permissions_of(role())), ids=str)
def test_each_permission_of_the_role_is_needed(server: Access, permission: Permission) -> None:
    version, kind = KINDS[permission.resource]
    owner = {"apiVersion": version, "kind": kind, "name": "nobody", "uid": "u", "controller": True}
    path = f"{RBAC}/clusterroles/{ROLE}"
    rules = [
        {"apiGroups": rule["apiGroups"], "resources": [resource], "verbs": rule["verbs"]}
        for rule in role()["rules"]
        for resource in rule["resources"]
        if resource != permission.resource.partition(".")[0]
    ]
    assert _settles(lambda: beside(server, "p", owner).unknown == "")
    do(server, "PATCH", path, {"rules": rules})
    try:
        assert _settles(lambda: f"`{ROLE}` permits it" in (beside(server, "p", owner).unknown))
        assert permission.resource in beside(server, "p", owner).unknown
    finally:
        do(server, "PATCH", path, {"rules": role()["rules"]})


def _settles(so: Callable[[], bool]) -> bool:
    """Whether it becomes so: API servers hear of roles a moment later."""

    async def wait() -> bool:
        for _ in range(100):
            if await asyncio.to_thread(so):
                return True
            await asyncio.sleep(0.1)
        return False

    return asyncio.run(wait())
