"""`koordpolicy explain pod` says the same of a pod whatever picture of the cluster it is given.

What decides stands beside nodes and pods here: volumes and claims, a budget, a service, images.
"""

import asyncio
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cluster.event_handlers import EVERY_RESOURCE
from koordpolicy.kube import Cluster, resources
from koordpolicy.kube.api import Connection, connect
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.snapshot import KEPT, Snapshot, take_snapshot, write_snapshot
from koordpolicy.runtime.clock import now_ns
from tests.parts.apiserver import ApiServer

Object = dict[str, Any]

ASKED = {
    "far-volume": "3 node(s) didn't match PersistentVolume's node affinity",
    "same-disk": "shop/same-disk would go to b",
    "dear": "Room would be made on c: shop/precious would have to go.",
    "desperate": "shop/guarded would have to go, which breaks 1 disruption budgets",
    "spread": "PodTopologySpread: koordinator",
    "image": "ImageLocality: koordinator",
}
"""Pods that wait, and what is to be said of them."""


def _object(api_version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    labels = more.pop("labels", {})
    metadata = {"name": name, "labels": labels, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def _node(name: str, zone: str, images: tuple[str, ...] = (), **spec: Any) -> Object:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {
        "allocatable": room,
        "capacity": room,
        "images": [{"names": [image], "sizeBytes": 900 << 20} for image in images],
    }
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    return _object("v1", "Node", name, labels=labels, spec=spec, status=status)


def _pod(name: str, cpu: str, *, image: str = "example/app:1", labels: Any = None, **spec: Any) -> Object:
    resources = {"requests": {"cpu": cpu, "memory": "10Mi"}}
    env = [{"name": "TOKEN", "value": "hunter2"}]
    container = {"name": "main", "image": image, "resources": resources, "env": env}
    spec = {"schedulerName": "koord-scheduler", "priority": 0, "containers": [container], **spec}
    return _object("v1", "Pod", name, "shop", labels=labels or {}, spec=spec, status={"phase": "Pending"})


def _volume(name: str, node: str) -> Object:
    where = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "claimRef": {"namespace": "shop", "name": name},
        "csi": {"driver": "x.example.com", "volumeHandle": name, "volumeAttributes": {"key": "hunter2"}},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}},
    }
    return _object("v1", "PersistentVolume", name, spec=spec, status={"phase": "Bound"})


def _claim(name: str) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "volumeName": name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    made = _object("v1", "PersistentVolumeClaim", name, "shop", spec=spec, status={"phase": "Bound"})
    made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return made


_DISK = {"name": "disk", "gcePersistentDisk": {"pdName": "shared"}}
_OTHER = {"name": "disk", "gcePersistentDisk": {"pdName": "other"}}
_CLASS = "scheduling.k8s.io/v1"
_DEAR: Any = {"priority": 9500, "priorityClassName": "dear"}

# Not in the order of their names, in which servers list them.
OBJECTS = [
    _object("v1", "Namespace", "shop"),
    _object(_CLASS, "PriorityClass", "middling", value=100, description="-"),
    _object(_CLASS, "PriorityClass", "dear", value=9500, description="-"),
    _object(_CLASS, "PriorityClass", "dearest", value=9600, description="-"),
    _node("c", "z2"),
    _node("b", "z2", images=("example/large:1",)),
    _node("a", "z1"),
    _node("far", "z3", unschedulable=True),
    _pod("holds-disk", "1", nodeName="a", volumes=[_DISK], labels={"app": "web"}),
    _pod("other-disk", "1", nodeName="b", volumes=[_OTHER]),
    _pod("guarded", "2500m", nodeName="a", labels={"app": "guarded"}),
    _pod("precious", "3500m", nodeName="c", priority=100, priorityClassName="middling"),
    _pod("bound", "2", nodeName="b", **{**_DEAR, "preemptionPolicy": "PreemptLowerPriority"}),
    _object("v1", "Service", "web", "shop", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
    _object(
        "policy/v1",
        "PodDisruptionBudget",
        "keep",
        "shop",
        spec={"selector": {"matchLabels": {"app": "guarded"}}, "minAvailable": 1},
        status={"disruptionsAllowed": 0, "expectedPods": 1, "currentHealthy": 1, "desiredHealthy": 1},
    ),
    _object(
        "storage.k8s.io/v1",
        "StorageClass",
        "slow",
        provisioner="x.example.com",
        parameters={"restuserkey": "hunter2"},
        volumeBindingMode="WaitForFirstConsumer",
    ),
    _volume("there", "far"),
    _claim("there"),
    _pod("far-volume", "100m", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "there"}}]),
    _pod("same-disk", "100m", volumes=[_DISK], nodeSelector={"topology.kubernetes.io/zone": "z2"}),
    _pod("dear", "3", **_DEAR),
    _pod("desperate", "3", **_DEAR, nodeSelector={"kubernetes.io/hostname": "a"}),
    _pod("spread", "100m", labels={"app": "web"}),
    _pod("image", "100m", image="example/large:1"),
]


def _told(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    texts = []
    for name in ASKED:
        code = main(("explain", "pod", f"shop/{name}", *arguments), Terminal(out, err))
        assert (code, err.getvalue()) == (0, "")
        # Only a cluster that was asked can say what its scheduler decides by.
        texts.append(re.sub(r"\n    Schedulers may decide.*?\n\n", "\n", out.getvalue(), flags=re.DOTALL))
        out.truncate(out.seek(0))
    return "\n".join(texts)


@pytest.fixture(scope="module")
def from_manifests(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("manifests") / "cluster.yaml"
    file.write_text("\n---\n".join(map(json.dumps, OBJECTS)), encoding="utf-8")
    return _told("-f", str(file))


async def _fill(cluster: Cluster) -> None:
    """Make all objects, with their status where that is written apart."""
    for obj in OBJECTS:
        resource = resources.resource_of(obj["apiVersion"], obj["kind"])
        assert resource is not None
        namespace = obj["metadata"].get("namespace")
        await cluster.create(resource, obj, namespace=namespace)
        if "status" in obj and resource != resources.NODES:
            made = await cluster.get(resource, obj["metadata"]["name"], namespace=namespace)
            await cluster.update(resource, {**made, "status": obj["status"]}, subresource="status")


def test_what_is_asked_depends_on_more_than_nodes_and_pods(from_manifests: str) -> None:
    words = " ".join(from_manifests.split())
    assert [expected for expected in ASKED.values() if expected not in words] == []


def test_a_snapshot_of_a_cluster_says_the_same(from_manifests: str, tmp_path: Path) -> None:
    async def taken() -> Snapshot:
        cluster = MemoryCluster(Store(lambda: now_ns() / 10**9))
        await _fill(cluster)
        return await take_snapshot(cluster, now_ns())

    file = tmp_path / "cluster.json.gz"
    snapshot = asyncio.run(taken())
    write_snapshot(snapshot, file)
    assert "hunter2" not in json.dumps(snapshot.objects, default=dict)
    assert _told("-s", str(file)) == from_manifests


def test_a_real_cluster_says_the_same(
    from_manifests: str, tmp_path: Path, own_apiserver: Callable[..., ApiServer]
) -> None:
    # Nodes that no kubelet reports for stay as they are written.
    server = own_apiserver(without_admission=("ServiceAccount", "TaintNodesByCondition"))
    kubeconfig = str(server.kubeconfig())

    async def filled() -> None:
        async with connect(
            Connection.load(kubeconfig, None), jitter=lambda: 0.5, component="test"
        ) as cluster:
            await _fill(cluster)

    asyncio.run(filled())
    assert _told("--kubeconfig", kubeconfig) == from_manifests
    file = tmp_path / "cluster.json"
    terminal = Terminal(io.StringIO(), io.StringIO())
    assert main(("snapshot", str(file), "--kubeconfig", kubeconfig), terminal) == 0
    assert _told("-s", str(file)) == from_manifests


def test_all_that_event_handlers_hear_of_is_kept() -> None:
    assert set(EVERY_RESOURCE) <= set(KEPT)


def test_what_an_old_snapshot_lacks_is_told(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    plain: dict[str, list[Object]] = {"nodes": [], "pods": []}
    for obj in OBJECTS:
        if obj["kind"] in ("Node", "Pod"):
            plain[f"{obj['kind'].lower()}s"].append(obj)
    write_snapshot(Snapshot(now_ns(), plain, absent=("nodemetrics.slo.koordinator.sh",)), file)
    out, err = io.StringIO(), io.StringIO()
    assert main(("explain", "pod", "shop/dear", "-s", str(file)), Terminal(out, err)) == 0
    assert err.getvalue().startswith("the snapshot is an old one without namespaces, ")
    assert "poddisruptionbudgets.policy, podgroups.scheduling.sigs.k8s.io" in err.getvalue()
    assert "nodemetrics" not in err.getvalue()
