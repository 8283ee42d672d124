"""Simulations of clusters that have more than nodes and pods: volumes, budgets, controllers, NUMA zones."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from koordpolicy.kube.resources import NODE_RESOURCE_TOPOLOGIES, NODES
from koordpolicy.model.node import read_node
from koordpolicy.simulator.report import report
from koordpolicy.simulator.simulation import Simulation, SimulationSettings
from koordpolicy.simulator.workload import Arrival, Wave, Workload
from tests.integration.simulations import MINUTE, graph_with, job, node, pod

GRAPH = graph_with()
ZONE = "topology.kubernetes.io/zone"
Json = Mapping[str, Any]


def simulation(
    arrivals: Sequence[Arrival], nodes: Sequence[Json], *objects: Json, **settings: Any
) -> Simulation:
    given = Workload(tuple(nodes), tuple(arrivals), objects=objects, span=60 * MINUTE)
    made = Simulation(GRAPH, given, SimulationSettings(5 * MINUTE, **settings), np.random.default_rng(1))
    made.run()
    return made


def storage_class(name: str, *, waits: bool, **more: Any) -> Json:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    found = {"provisioner": "disks.example", "volumeBindingMode": mode, **more}
    return {"kind": "StorageClass", "metadata": {"name": name, **found.pop("metadata", {})}, **found}


def claim(name: str, of: str | None = None) -> Json:
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    if of is not None:
        spec["storageClassName"] = of
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def volume(name: str, of: str, zone: str) -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
            "storageClassName": of,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def with_claim(name: str, claimed: str, cpu: str = "1", at: int = 0) -> Arrival:
    asked = pod(name, cpu)
    asked["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claimed}}]
    return Arrival(at * MINUTE, asked)


def zoned() -> list[Json]:
    """A large node without the volume, and a small one with it."""
    return [node("a", 64, **{ZONE: "z1"}), node("b", 4, **{ZONE: "z2"})]


def where(made: Simulation, name: str) -> str:
    found = made.cluster.objects.pods["default", name]
    return found.node_name


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "at-once"])
def test_a_pod_is_placed_where_its_volume_is(waits: bool) -> None:
    storage = storage_class("local", waits=waits, provisioner="kubernetes.io/no-provisioner")
    made = simulation(
        [with_claim("p", "c")], zoned(), storage, volume("v", "local", "z2"), claim("c", "local")
    )
    assert where(made, "p") == "b"
    assert report(made)["volumes"] == {"bound": 1, "made": 0}


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "at-once"])
def test_no_two_claims_get_one_volume(waits: bool) -> None:
    storage = storage_class("local", waits=waits, provisioner="kubernetes.io/no-provisioner")
    volumes = [volume("v", "local", "z1"), volume("w", "local", "z2")]
    claims = [claim("c", "local"), claim("d", "local")]
    made = simulation([with_claim("p", "c"), with_claim("q", "d")], zoned(), storage, *volumes, *claims)
    assert {where(made, "p"), where(made, "q")} == {"a", "b"}


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "at-once"])
def test_a_class_makes_a_volume_that_later_pods_have_to_go_to(waits: bool) -> None:
    arrivals = [with_claim("p", "c", "4"), with_claim("q", "c", "3", at=10)]
    made = simulation(arrivals, zoned(), storage_class("fast", waits=waits), claim("c", "fast"))
    assert where(made, "p") == "a"
    assert report(made)["volumes"] == {"bound": 1, "made": 1}
    assert where(made, "q")
    assert where(made, "q") == "a" or not waits
    known = made.cluster.schedulers.first.cache.state.volumes.claim(("default", "c"))
    assert known is not None
    assert known.bound
    bound = made.cluster.schedulers.first.cache.state.volumes.volume(known.volume)
    assert bound is not None
    assert (bound.affinity is not None) is waits


def test_a_pod_brings_its_own_claim_of_the_usual_class() -> None:
    usual = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    asked = pod("p", "1")
    template = {"spec": claim("", "fast")["spec"]}
    asked["spec"]["volumes"] = [{"name": "own", "ephemeral": {"volumeClaimTemplate": template}}]
    arrivals = [Arrival(0, asked), with_claim("q", "plain")]
    made = simulation(arrivals, zoned(), storage_class("fast", waits=True, metadata=usual), claim("plain"))
    assert report(made)["volumes"] == {"bound": 2, "made": 2}
    assert report(made)["pods"]["pending"] == 0


def test_a_claim_that_is_bound_in_the_picture_stays_so() -> None:
    bound = claim("c", "local")
    bound["spec"]["volumeName"] = "v"
    bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    held = volume("v", "local", "z2")
    held["spec"]["claimRef"] = {"namespace": "default", "name": "c", "uid": "of-another-cluster"}
    made = simulation([with_claim("p", "c")], zoned(), storage_class("local", waits=True), held, bound)
    assert where(made, "p") == "b"
    assert report(made)["volumes"] == {"bound": 0, "made": 0}


def test_a_pod_whose_claim_is_nowhere_says_so() -> None:
    told = report(simulation([with_claim("p", "none")], zoned()))
    assert told["pending"][0]["reason"] == 'persistentvolumeclaim "none" not found'


def of_class(name: str, cpu: str, priority: str, at: int = 0) -> Arrival:
    asked = pod(name, cpu, app=name)
    asked["spec"]["priorityClassName"] = priority
    return Arrival(at * MINUTE, asked)


@pytest.mark.parametrize("protected", [True, False])
def test_a_budget_protects(protected: bool) -> None:
    """Two nodes are full; who has to go for the urgent one is the one that no budget covers."""
    arrivals = [
        of_class("free", "9", "p1"),
        of_class("kept", "9", "p1"),
        of_class("urgent", "8", "p9", 20),
    ]
    classes = [{"kind": "PriorityClass", "metadata": {"name": f"p{at}"}, "value": 9000 + at} for at in (1, 9)]
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    made = simulation(arrivals, [node("a"), node("b")], *classes, *([budget] if protected else []))
    told = report(made)
    assert told["scheduling"]["preempted"] == 1
    assert (where(made, "kept") != "") is protected
    assert (where(made, "free") != "") is not protected


def test_zones_get_their_share_of_what_is_overcommitted() -> None:
    amounts = [{"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"}]
    amounts.append({"name": "memory", "capacity": "32Gi", "allocatable": "32Gi", "available": "32Gi"})
    zones = [{"name": f"node-{at}", "type": "Node", "resources": amounts} for at in range(2)]
    topology = {
        "apiVersion": NODE_RESOURCE_TOPOLOGIES.api_version,
        "kind": NODE_RESOURCE_TOPOLOGIES.kind,
        "metadata": {"name": "a"},
        "topologyPolicies": ["SingleNUMANodePodLevel"],
        "zones": zones,
    }
    made = simulation([job("j", "2")], [node("a")], topology)
    found = made.cluster.objects.state.zones["a"].zones
    offered = [one.allocatable.get("kubernetes.io/batch-cpu", 0) for one in found]
    assert len(offered) == 2
    assert all(0 < one < 8_000 for one in offered)


def test_what_nodes_offer_stands_in_the_picture_however_often_it_was_others() -> None:
    busier = Arrival(0, pod("web", "8"), None, Wave(0.1, 0.9, 1.0))
    made = simulation([busier, job("j", "2")], [node("a")])
    [shown] = made.cluster.picture({}).objects[str(NODES)]
    found, said = read_node(shown), made.cluster.objects.nodes["a"]
    assert found.allocatable["kubernetes.io/batch-cpu"] > 0
    assert (found.allocatable, found.capacity) == (said.allocatable, said.capacity)
    assert found.annotations == said.annotations


def test_a_controller_in_the_picture_owns_its_pods() -> None:
    replicas = {
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "of-another-cluster"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    }
    asked = pod("p", "1", app="web")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "of-another-cluster"}
    asked["metadata"]["ownerReferences"] = [{**owner, "controller": True}, {**owner, "name": "gone"}]
    made = simulation([Arrival(0, asked)], [node("a")], replicas)
    (owned,) = made.cluster.objects.pods.values()
    assert owned.controller is not None
    assert owned.controller.name == "web"
    assert made.cluster.schedulers.first.cache.state.workloads.selector_of(owned) is not None


def test_a_pod_that_waits_says_why_in_its_condition() -> None:
    made = simulation([Arrival(0, pod("p", "100"))], [node("a")])
    condition = made.cluster.objects.pods["default", "p"].condition("PodScheduled")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
