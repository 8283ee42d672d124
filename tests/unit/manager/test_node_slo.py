"""NodeSLO objects on the in-memory cluster: what is written, when, and what is left alone."""

import asyncio
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.port import MergePatch, Object
from koordpolicy.manager.controllers.node_object import difference
from koordpolicy.manager.controllers.node_slo import NodeSLOController, SLOPlan
from koordpolicy.model.protocol import NETWORK_BANDWIDTH
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import document, graph

DEFAULTS = {
    "resourceUsedThresholdWithBE": {
        "enable": True,
        "cpuSuppressThresholdPercent": 65,
        "cpuSuppressPolicy": "cpuset",
        "memoryEvictThresholdPercent": 70,
        "cpuEvictPolicy": "evictByRealLimit",
    },
    "resourceQOSStrategy": {},
    "cpuBurstStrategy": {
        "policy": "none",
        "cpuBurstPercent": 1000,
        "cfsQuotaBurstPercent": 300,
        "cfsQuotaBurstPeriodSeconds": -1,
        "sharePoolThresholdPercent": 50,
    },
    "systemStrategy": {"totalNetworkBandwidth": "0"},
}
"""What the built-in policies say, in Koordinator's words; they suppress, where Koordinator waits to be told."""


class Site:
    """A small cluster whose manager keeps NodeSLO objects."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self.small = SmallCluster(graph(*documents))
        self.plans: list[SLOPlan] = []
        self.controller = NodeSLOController(
            lambda node, labels: self.small.graph,
            self.small.objects,
            lambda name: self.small.store.find(resources.NODE_SLOS, name),
            lambda: self.small.nanoseconds,
            lambda _, plan: self.plans.append(plan),
        )

    def reconcile(self, name: str = "n") -> bool:
        self.small.look()
        return asyncio.run(self.controller.reconcile(MemoryCluster(self.small.store), name))

    def slo(self, name: str = "n") -> Object:
        return self.small.store.get(resources.NODE_SLOS, name)

    def patch(self, body: dict[str, Any], name: str = "n") -> None:
        self.small.store.patch(resources.NODE_SLOS, name, MergePatch(body))


def test_each_node_gets_an_object_that_says_what_policies_say_and_once() -> None:
    site = Site()
    site.small.node()
    assert site.reconcile()
    assert site.slo()["spec"] == DEFAULTS
    assert not site.reconcile()


def test_policies_of_some_nodes_stand_in_their_objects_alone() -> None:
    match = {"nodes": {"matchLabels": {"pool": "a"}}}
    site = Site(
        document("CPUBurst", "pool-a", {"match": match, "policy": "auto"}),
        document(
            "Isolation", "be", {"match": match, "group": "BE", "cpu": {"enabled": True, "identity": -1}}
        ),
        document("HostApplicationSet", "a", {"match": match, "applications": [{"name": "db", "qos": "LS"}]}),
    )
    for name, labels in (("a", {"pool": "a"}), ("b", {})):
        site.small.create(
            resources.NODES,
            {"metadata": {"name": name, "labels": labels}, "status": {"capacity": {"cpu": "4"}}},
        )
        assert site.reconcile(name)
    spec = site.slo("a")["spec"]
    assert spec["cpuBurstStrategy"]["policy"] == "auto"
    assert spec["resourceQOSStrategy"] == {"beClass": {"cpuQOS": {"enable": True, "groupIdentity": -1}}}
    assert spec["hostApplications"] == [{"name": "db", "qos": "LS", "strategy": {}}]
    assert site.slo("b")["spec"] == DEFAULTS


def test_what_somebody_else_wrote_is_mended_and_extensions_stay() -> None:
    site = Site()
    site.small.node()
    site.reconcile()
    site.patch(
        {
            "spec": {
                "extensions": {"mine": {"a": 1}},
                "cpuBurstStrategy": {"policy": "auto"},
                "systemStrategy": {"watermarkScaleFactor": 400},
                "hostApplications": [{"name": "x"}],
            }
        }
    )
    assert site.reconcile()
    assert site.slo()["spec"] == {**DEFAULTS, "extensions": {"mine": {"a": 1}}}


def test_what_the_api_server_fills_in_is_no_difference() -> None:
    site = Site(
        document("Isolation", "be", {"group": "BE", "network": {"enabled": True, "egress": {"limit": "40%"}}})
    )
    site.small.node()
    site.reconcile()
    filled = {"ingressRequest": 0, "ingressLimit": 100, "egressRequest": 0}
    site.patch({"spec": {"resourceQOSStrategy": {"beClass": {"networkQOS": filled}}}})
    assert not site.reconcile()
    site.patch({"spec": {"resourceQOSStrategy": {"beClass": {"networkQOS": {"ingressLimit": 10}}}}})
    assert site.reconcile()
    assert "ingressLimit" not in site.slo()["spec"]["resourceQOSStrategy"]["beClass"]["networkQOS"]


@pytest.mark.parametrize(
    ("annotation", "section", "problems"),
    [("25G", {"totalNetworkBandwidth": "25G"}, 0), ("fast", None, 1), ("-1", None, 1)],
)
def test_a_node_says_its_own_bandwidth(annotation: str, section: object, problems: int) -> None:
    site = Site(document("SystemTuning", "all", {"parameters": {"bandwidth": "1G"}, "reapsMemory": True}))
    site.small.node(annotations={NETWORK_BANDWIDTH: annotation})
    site.reconcile()
    expected = None if section is None else {"memcgReapBackGround": 1, "totalNetworkBandwidth": "25G"}
    assert site.slo()["spec"].get("systemStrategy") == expected
    assert len(site.plans[-1].problems) == problems


def test_a_policy_that_fails_leaves_its_section_as_it_is() -> None:
    site = Site()
    site.small.node()
    site.reconcile()
    failing = {"threshold": {"cel": "percent(int(node.labels['threshold']))"}}
    site.small.graph = graph(
        document("MemoryEviction", "x", failing), document("CPUBurst", "y", {"policy": "auto"})
    )
    assert site.reconcile()
    assert site.slo()["spec"]["resourceUsedThresholdWithBE"] == DEFAULTS["resourceUsedThresholdWithBE"]
    assert site.slo()["spec"]["cpuBurstStrategy"]["policy"] == "auto"
    assert len(site.plans[-1].problems) == 1


def test_the_object_goes_with_its_node_not_with_our_sight_of_it() -> None:
    site = Site()
    site.small.node()
    site.reconcile()
    site.small.objects.remove_node("n")
    assert not asyncio.run(site.controller.reconcile(MemoryCluster(site.small.store), "n"))
    site.small.store.delete(resources.NODES, "n")
    assert site.reconcile()
    assert site.small.store.find(resources.NODE_SLOS, "n") is None
    assert not site.reconcile()


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"c": 1, "d": 3}}, {"a": None, "b": {"d": 3}}),
        ({"a": [1]}, {"a": [1, 2], "b": {}}, {"a": [1, 2], "b": {}}),
        ({"a": {"b": 1}}, {"a": 1}, {"a": 1}),
    ],
)
def test_a_patch_says_what_differs(old: object, new: object, patch: object) -> None:
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert difference(old, new) == patch
