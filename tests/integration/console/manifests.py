"""Manifests that the page shows: names that would be markup, quotas that lend, a node with cards and zones."""

import json
from collections.abc import Iterator
from typing import Any

from koordpolicy.model.protocol import DEVICE_ALLOCATED
from tests.unit.scheduler.test_cpus import topology_object
from tests.unit.scheduler.test_devices import device_object

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
RATIO = "koordinator.sh/gpu-memory-ratio"
_QUOTA = "quota.scheduling.koordinator.sh/name"


def manifests() -> list[dict[str, Any]]:
    """All of it: 8 cores on one node, 16 with two cards and two zones on the other."""
    return [*_hostile(), *_cards(), *_quotas()]


def _node(name: str, amounts: dict[str, str], **metadata: Any) -> dict[str, Any]:
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}, "status": status}


def _pod(name: str, node: str, requests: dict[str, str], **metadata: Any) -> dict[str, Any]:
    spec = {"schedulerName": "koord-scheduler", "nodeName": node}
    containers = [{"name": "main", "image": HOSTILE, "resources": {"requests": requests}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, **metadata},
        "spec": {**spec, "containers": containers},
        "status": {"phase": "Running" if node else "Pending"},
    }


def _hostile() -> Iterator[dict[str, Any]]:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    yield _node(HOSTILE, amounts, labels={"pool": HOSTILE, HOSTILE: "a"}, annotations={HOSTILE: HOSTILE})
    labels = {"koordinator.sh/qosClass": HOSTILE, "pod-group.scheduling.sigs.k8s.io": HOSTILE}
    for node in (HOSTILE, ""):
        yield _pod(HOSTILE + ("" if node else "2"), node, {}, namespace=HOSTILE, labels=labels)


def _cards() -> Iterator[dict[str, Any]]:
    yield _node("n0", {"cpu": "18", "memory": "8Gi", "pods": "10", RATIO: "200"})
    yield {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", **device_object(2)}
    topology = topology_object("n0", zones=2, cores=2)
    yield {"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", **topology}
    for name, part, status in (("half", "40", ""), ("pinned", "25", '{"cpuset":"0-1"}')):
        share = {"minor": 1, "id": "gpu-1", "resources": {RATIO: part}}
        annotations = {DEVICE_ALLOCATED: json.dumps({"gpu": [share]})}
        requests, labels = {RATIO: part}, dict[str, str]()
        if status:
            annotations["scheduling.koordinator.sh/resource-status"] = status
            requests["cpu"] = "2"
            labels = {"koordinator.sh/qosClass": "LSR", "koordinator.sh/priority-class": "koord-prod"}
        yield _pod(name, "n0", requests, annotations=annotations, labels=labels)


def _quotas() -> Iterator[dict[str, Any]]:
    """Guarantees of all cores that `pinned` leaves, 24: 6 that another uses, 2 that nobody does."""
    for name, least, used in ((HOSTILE, "10", "2"), ("borrower", "4", "10"), ("full", "10", "10")):
        yield {
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"min": {"cpu": least}, "max": {"cpu": "24"}},
        }
        yield _pod(f"of-{len(name)}", "n0" if used == "10" else HOSTILE, {"cpu": used}, labels={_QUOTA: name})
