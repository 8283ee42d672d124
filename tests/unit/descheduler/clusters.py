"""Clusters for descheduling, made of API objects."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from koordpolicy.algorithms.work import finished
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.relocation import Relocations
from koordpolicy.descheduler.round import Memories, RoundReport, run_round
from koordpolicy.descheduler.rules import ProfileRules
from koordpolicy.descheduler.snapshot import SeenPod, snapshot_of
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import Object
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.time import NANOSECONDS, time_text
from koordpolicy.scheduler.relocation import SchedulerRelocations
from tests.vectors.policies import document, graph_of

NOW: Final = 1_767_225_600 * NANOSECONDS
PROFILE: Final = "koord-descheduler"
_GIB: Final = 2**30


def node(name: str, cpu: str = "10", ready: str = "True", **spec: Any) -> Object:
    """A node of so many CPUs and 40Gi."""
    amounts = {"cpu": cpu, "memory": "40Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def pod(name: str, on: str, cpu: str = "1", **metadata: Any) -> Object:
    """A pod of a ReplicaSet that requests so many CPUs, an hour old."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": time_text(NOW - 3600 * NANOSECONDS),
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "web",
                    "controller": True,
                }
            ],
            **metadata,
        },
        "spec": {
            "nodeName": on,
            "containers": [
                {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
            ],
        },
        "status": {"phase": "Running"},
    }


def report(name: str, used: Mapping[str, str], system: str = "0", age: float = 0.0) -> Object:
    """What a node measured: CPU by pod, and beside pods. Each pod uses 1Gi."""
    return {
        "metadata": {"name": name},
        "status": {
            "updateTime": time_text(NOW - int(age * NANOSECONDS)),
            "nodeMetric": {
                "nodeUsage": {"resources": {"cpu": system, "memory": "0"}},
                "systemUsage": {"resources": {"cpu": system, "memory": "0"}},
            },
            "podsMetric": [
                {
                    "namespace": "default",
                    "name": key,
                    "podUsage": {"resources": {"cpu": cpu, "memory": str(_GIB)}},
                }
                for key, cpu in used.items()
            ],
        },
    }


def objects(
    nodes: Iterable[Object], pods: Iterable[Object] = (), reports: Iterable[Object] = ()
) -> ClusterObjects:
    """All of it as the descheduler hears it."""
    heard = ClusterObjects()
    for one in nodes:
        heard.set_node(read_node(one))
    for one in pods:
        heard.set_pod(read_pod(one))
    for one in reports:
        heard.set_metric(read_node_metric(one))
    return heard


def relocations_of(heard: ClusterObjects, graph: RuleGraph) -> SchedulerRelocations:
    """A scheduler that has heard of the same, asked whether pods would end better elsewhere."""
    found = SchedulerRelocations(graph, lambda: NOW)
    for name in heard.nodes:
        sight = heard.sight(name)
        assert sight is not None
        found.set_node(sight.node)
        if sight.metric is not None:
            found.set_metric(sight.metric)
        for one in sight.pods:
            found.set_pod(one)
    return found


def full_and_empty() -> ClusterObjects:
    """Node `full` with the pods `first`, `second` and `stays`, which use 3 of its 10 CPUs each, and the node `empty`."""
    names = ("first", "second", "stays")
    return objects(
        [node("full"), node("empty")],
        [pod(name, "full", "2") for name in names],
        [report("full", dict.fromkeys(names, "3")), report("empty", {})],
    )


def policies(*strategies: Mapping[str, Any], **spec: Any) -> RuleGraph:
    """The built-in profile with these strategies."""
    said = document("Descheduling", PROFILE, {"strategies": list(strategies), **spec})
    return graph_of(frozenset({"classes", "descheduling"}), said)


def one_round(
    graph: RuleGraph,
    heard: ClusterObjects,
    memories: Memories | None = None,
    allowed: Callable[[Any, SeenPod], Any] = lambda going, pod: None,
    now: int = NOW,
    relocations: Relocations | None = None,
) -> RoundReport:
    """One round of the built-in profile."""
    snapshot = finished(snapshot_of(heard, graph.catalogue, now))
    return finished(
        run_round(
            ProfileRules(graph, PROFILE),
            snapshot,
            graph.catalogue,
            memories or Memories(),
            allowed,
            relocations,
        )
    )
