"""What the console reads of one pod from a cluster: Events of whom, told apart by UID, and what its owner asked for."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from koordpolicy.cli.console_beside import read_beside
from koordpolicy.console.worlds.world import PodBackground
from koordpolicy.kube.errors import Forbidden
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import (
    EVENTS,
    JOBS,
    NODES,
    POD_MIGRATION_JOBS,
    PODS,
    REPLICA_SETS,
    Resource,
)
from koordpolicy.kube.snapshot import take_snapshot

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
SECRET = {"name": "main", "image": "i", "env": [{"name": "TOKEN", "value": "hunter2"}]}


def event(name: str, about: dict[str, str], component: str, at: int, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "involvedObject": about,
        "reason": more.pop("reason", "Told"),
        "message": name,
        "source": {"component": component},
        "type": "Normal",
        "count": 1,
        "lastTimestamp": f"2026-01-01T00:00:{at:02}Z",
        **more,
    }


def about(kind: str, name: str, uid: str = "") -> dict[str, str]:
    namespace = {} if kind in ("Node", "PodMigrationJob") else {"namespace": "default"}
    return {"kind": kind, "name": name, "uid": uid, **namespace}


async def fill(cluster: MemoryCluster, *pods: dict[str, Any]) -> None:
    await cluster.create(NODES, {"metadata": {"name": "n"}})
    for one in pods:
        await cluster.create(PODS, one, namespace="default")


def pod(owners: list[dict[str, Any]], **annotations: str) -> dict[str, Any]:
    metadata = {"name": "web-0", "ownerReferences": owners, "annotations": annotations}
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": [SECRET]}}


async def nothing(verb: str, resource: Resource) -> None:
    """Nothing is in the way."""


def asked(
    name: str,
    prepare: Callable[[MemoryCluster], Awaitable[None]],
    before: Callable[[str, Resource], Awaitable[None]] = nothing,
) -> PodBackground:
    async def run() -> PodBackground:
        store = Store(lambda: 0.0)
        cluster = MemoryCluster(store)
        await prepare(cluster)
        picture = await take_snapshot(cluster, 0)
        return await read_beside(MemoryCluster(store, before_request=before), name, picture)

    return asyncio.run(run())


def test_events_of_the_pod_its_owner_its_node_and_its_migration_in_order() -> None:
    async def prepare(cluster: MemoryCluster) -> None:
        await fill(cluster, pod([OWNER]))
        (there,) = (await cluster.list(PODS)).items
        uid = there["metadata"]["uid"]
        job = {"metadata": {"name": "move"}, "spec": {"podRef": {"namespace": "default", "name": "web-0"}}}
        await cluster.create(POD_MIGRATION_JOBS, job)
        series = {"count": 7, "lastObservedTime": "2026-01-01T00:00:05.5Z"}
        for one in (
            event("moved", about("PodMigrationJob", "move"), "koordpolicy-descheduler", 9),
            event("pulled", about("Pod", "web-0", uid), "kubelet", 5, series=series, type="Warning"),
            event("bound", about("Pod", "web-0", uid), "koordpolicy-scheduler", 4, reason="Scheduled"),
            event("before", about("Pod", "web-0", "gone"), "koordpolicy-agent", 1),
            event("warned", about("ReplicaSet", "web", "rs"), "koordpolicy-manager", 2),
            event("scaled", about("ReplicaSet", "web", "rs"), "replicaset-controller", 2),
            event("failed", about("Node", "n"), "koordpolicy-agent", 6),
            event("ready", about("Node", "n"), "kubelet", 3),
            event("other", about("Pod", "web-1"), "koordpolicy-agent", 7),
        ):
            await cluster.create(EVENTS, one, namespace="default")

    found = asked("default/web-0", prepare)
    assert found.events is not None
    assert [one.message for one in found.events] == ["before", "warned", "bound", "pulled", "failed", "moved"]
    assert [one.earlier for one in found.events] == [True, *[False] * 5]
    pulled = found.events[3]
    assert (pulled.count, pulled.warning, pulled.ours, pulled.last % 60) == (7, True, False, 5.5)
    assert [one.about for one in found.events] == [
        "Pod default/web-0",
        "ReplicaSet default/web",
        *["Pod default/web-0"] * 2,
        "Node n",
        "PodMigrationJob move",
    ]
    assert (found.unknown, found.submitted) == ("", None)


def test_a_template_tells_what_was_asked_for_without_secrets() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [SECRET]}}

    async def prepare(cluster: MemoryCluster) -> None:
        owner = {"metadata": {"name": "web"}, "spec": {"template": template}}
        made = await cluster.create(REPLICA_SETS, owner, namespace="default")
        await fill(cluster, pod([{**OWNER, "uid": made["metadata"]["uid"]}]))

    found = asked("default/web-0", prepare)
    assert found.source == "the template of ReplicaSet web"
    assert found.submitted is not None
    assert found.submitted["metadata"]["labels"] == {"app": "web"}
    assert "hunter2" not in json.dumps(found.submitted, default=dict)


def test_another_owner_of_that_name_is_none() -> None:
    async def prepare(cluster: MemoryCluster) -> None:
        owner = {"metadata": {"name": "web"}, "spec": {"template": {"spec": {"containers": [SECRET]}}}}
        await cluster.create(REPLICA_SETS, owner, namespace="default")
        await fill(cluster, pod([OWNER]))

    assert asked("default/web-0", prepare).submitted is None


def test_what_kubectl_applied_is_kept_by_a_pod_that_nobody_owns() -> None:
    sent = {"metadata": {"labels": {"app": "mine"}}, "spec": {"containers": [SECRET]}}
    noted = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(sent)}
    found = asked("default/web-0", lambda cluster: fill(cluster, pod([], **noted)))
    assert found.source == "what `kubectl apply` sent last"
    assert found.submitted is not None
    assert found.submitted["metadata"]["labels"] == {"app": "mine"}
    assert "hunter2" not in json.dumps(found.submitted)
    broken = {"kubectl.kubernetes.io/last-applied-configuration": "{"}
    assert asked("default/web-0", lambda cluster: fill(cluster, pod([], **broken))).submitted is None


@pytest.mark.parametrize("resource", [EVENTS, JOBS])
def test_what_may_not_be_read_is_told_and_the_rest_is_there(resource: Resource) -> None:
    async def refuse(verb: str, asked: Resource) -> None:
        if asked is resource:
            raise Forbidden(f"nobody may {verb} {asked}")

    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sum", "uid": "j", "controller": True}
    found = asked("default/web-0", lambda cluster: fill(cluster, pod([owner])), refuse)
    assert (found.events is None) == (resource is EVENTS)
    assert f"nobody may {'list' if resource is EVENTS else 'get'} {resource}" in found.unknown
    assert "ClusterRole `koordpolicy-console` permits it" in found.unknown


def test_names_that_would_be_more_of_a_selector_are_not_asked_for() -> None:
    async def refuse(verb: str, resource: Resource) -> None:
        raise AssertionError(resource)

    for name in ("default/a,reason=Killed", "../x/a", "default/", "default/a=b"):
        assert "is no name of a pod" in asked(name, fill, refuse).unknown
