"""Pods of a node with what was measured of them, and the node as a whole."""

from typing import Any

from koordpolicy.algorithms.classify import Catalogue, PriorityBand, QoSClass
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.records import usage_of
from koordpolicy.language.facts import TIMES
from koordpolicy.model import protocol as wire
from koordpolicy.model.metric import HostApplicationMetric, NodeMetric, PodMetric
from koordpolicy.model.node import Node
from koordpolicy.model.numa import Zone
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.time import NANOSECONDS

CATALOGUE = Catalogue(
    (QoSClass("LS", ("Burstable",), "prod"), QoSClass("BE", ("BestEffort",), "batch")),
    (
        PriorityBand("prod", "koord-prod", 9000, 9999, 9500),
        PriorityBand("batch", "koord-batch", 5000, 5999, 5500),
    ),
)
STATUS = {wire.RESOURCE_STATUS: '{"numaNodeResources": [{"node": 1, "resources": {"cpu": "2"}}]}'}


def requesting(name: str, cpu: int, **said: Any) -> Pod:
    return Pod(name, containers=(Container("c", requests={"cpu": cpu}),), **said)


SIGHT = NodeSight(
    Node("n", capacity={"cpu": 8000}, allocatable={"cpu": 8000}),
    [
        requesting("web", 1000, priority=9000, annotations=STATUS),
        requesting("crawl", 500, phase="Running"),
        requesting("done", 4000, phase="Succeeded", priority=9000, annotations=STATUS),
        Pod("broken", annotations={wire.RESOURCE_STATUS: "{"}),
    ],
    NodeMetric(
        "n",
        updated_at=5 * NANOSECONDS,
        node_usage={"cpu": 3000},
        pods=(
            PodMetric("default", "web", {"cpu": 700, "memory": 7}),
            PodMetric("default", "gone", {"cpu": 100}, "koord-prod", "LS"),
            PodMetric("other", "web", {"cpu": 50}, "gold", "??"),
        ),
        host_applications=(HostApplicationMetric("db", {"cpu": 9}, "koord-prod", "LS", "Kubepods"),),
    ),
    [Zone("node-0", allocatable={"cpu": 4000}), Zone("node-1", allocatable={"cpu": 4000})],
)
RECORD: dict[str, Any] = node_record(SIGHT, CATALOGUE, TIMES, 8 * NANOSECONDS)


def test_pods_known_and_unknown() -> None:
    shown = [
        (pod["namespace"], pod["name"], pod["known"], pod["band"], pod.get("usage.cpu"))
        for pod in RECORD["pods"]
    ]
    assert shown == [
        ("default", "web", True, "prod", 700),
        ("default", "crawl", True, "batch", None),
        ("default", "done", True, "prod", None),
        ("default", "broken", True, "batch", None),
        ("default", "gone", False, "prod", 100),
        ("other", "web", False, "", 50),
    ]
    gone, stranger = RECORD["pods"][-2:]
    assert (gone["qosLabel"], gone["reported.band"], gone["request.cpu"]) == ("LS", "prod", 0)
    assert (stranger["qosLabel"], stranger["reported.band"]) == ("", "")
    assert "reported.band" not in RECORD["pods"][1]


def test_sums_over_the_node() -> None:
    assert RECORD["metric.age"] == TIMES.duration(3 * NANOSECONDS)
    assert (RECORD["requested.cpu"], RECORD["requested.pods"]) == (1500, 3)
    assert (RECORD["usage.prod.cpu"], RECORD["usage.prod.memory"]) == (800, 7)
    assert usage_of(RECORD["pods"], ["prod"], outside=True) == {"cpu": 50, "memory": 0}
    (host,) = RECORD["hostApplications"]
    assert (host["band"], host["cgroupBase"], host["usage.cpu"]) == ("prod", "Kubepods", 9)


def test_zones_know_what_is_allocated_in_them() -> None:
    assert [(zone["index"], zone["count"], zone["requested.cpu"]) for zone in RECORD["zones"]] == [
        (0, 2, 0),
        (1, 2, 2000),
    ]


def test_a_node_without_a_report() -> None:
    bare = node_record(NodeSight(SIGHT.node), CATALOGUE, TIMES, 0)
    assert (bare["pods"], bare["zones"], bare["hostApplications"]) == ([], [], [])
    assert {"metric.age", "usage.total.cpu", "usage.prod.cpu"}.isdisjoint(bare)
