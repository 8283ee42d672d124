"""A profile at work on an example: what a scheduler does with a graph, done once where it can do no harm."""

from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube import Object
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.runtime.policies.revisions import Unfit
from koordpolicy.scheduler.profile import ProfileError
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.scheduler import Scheduler

_NOW: Final = 1_767_225_600_000_000_000
"""2026-01-01: the example is the same in every trial."""
_TIME: Final = "2026-01-01T00:00:00Z"
_NODES: Final = ("n0", "n1", "n2")
_PODS: Final = {"fits": ("1", 0), "is-too-large": ("1000", 0), "may-preempt": ("60", 1_000_000)}
"""CPU and priority of pods: one is placed, one is refused and told why, one looks for victims."""


def rehearse(graph: RuleGraph, profile: str, role: Role) -> None:
    """Let a scheduler decide on pods and nodes of an example. Raises `Unfit` where it cannot work with the graph."""
    try:
        scheduler = Scheduler(graph, lambda: _NOW, profile=profile, role=role, diagnosing=True)
    except ProfileError as problem:
        raise Unfit(str(problem)) from None
    for name in _NODES:
        scheduler.set_node(read_node(_node(name)))
        scheduler.set_metric(read_node_metric(_metric(name)))
        scheduler.set_pod(read_pod(_pod(f"on-{name}", "2", 0, profile, node=name)))
    for name, (cpu, priority) in _PODS.items():
        scheduler.set_pod(read_pod(_pod(name, cpu, priority, profile)))
    for _ in _PODS:
        if scheduler.schedule_one() is None:
            break
    scheduler.diagnosis.some(lambda: False)


def _node(name: str) -> Object:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _metric(name: str) -> Object:
    usage = {"nodeUsage": {"resources": {"cpu": "8", "memory": "32Gi"}}}
    return {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
        "status": {"updateTime": _TIME, "nodeMetric": usage},
    }


def _pod(name: str, cpu: str, priority: int, profile: str, node: str = "") -> Object:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": _TIME,
            "labels": {"app": name},
        },
        "spec": {
            "schedulerName": profile,
            "priority": priority,
            "containers": [{"name": "main", "image": "example", "resources": resources}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }
