"""Pods and their surroundings, one decision after another: what one decision changes for the next."""

from typing import Any

import pytest

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.state import ClusterState
from koordpolicy.model.node import read_node
from koordpolicy.scheduler import Refusals
from tests.unit.scheduler.world import World, pod, policies

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def zones(*names: str) -> dict[str, Any]:
    """Nodes n0, n1, ... in these zones."""
    return {
        "nodes": {
            f"n{at}": {"labels": {ZONE: zone, HOST: f"n{at}"} if zone else {HOST: f"n{at}"}}
            for at, zone in enumerate(names)
        }
    }


def apart(key: str, **labels: str) -> dict[str, Any]:
    terms = [{"topologyKey": key, "labelSelector": {"matchLabels": labels}}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def spread(key: str, skew: int, hard: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "topologyKey": key,
            "maxSkew": skew,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]


def test_equal_pods_that_want_to_be_apart_take_a_node_each() -> None:
    world = World()
    world.build(zones("z1", "z1", "z2"))
    said = {"labels": {"app": "web"}, "affinity": apart(HOST, app="web")}
    found = [world.place(f"w{at}", said) for at in range(4)]
    assert sorted(one.node for one in found) == ["", "n0", "n1", "n2"]
    assert found[3].refusals == (
        Refusals("InterPodAffinity", "node(s) didn't match pod anti-affinity rules", 3),
    )


def test_a_pod_without_wishes_stays_away_from_pods_that_object() -> None:
    world = World()
    world.build(zones("z1", "z2"))
    assert world.place("shy", {"affinity": apart(ZONE, app="web")}).node == "n0"
    assert world.place("other", {"labels": {"app": "db"}}).feasible == 2
    decision = world.place("web", {"labels": {"app": "web"}})
    assert decision.node == "n1"
    assert decision.refusals == (
        Refusals("InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules", 1),
    )


def test_a_waiting_pod_hears_of_the_pod_that_it_wants_to_be_near() -> None:
    world = World()
    world.build(zones("z1", "z2"))
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}]
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert not world.place("web", {"affinity": near}).placed
    world.pass_time(60)
    assert world.scheduler.schedule_one() is None, "nothing has happened"
    world.scheduler.set_pod(pod("db", {"labels": {"app": "db"}, "node": "n1", "phase": "Running"}))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.node == "n1"


def test_equal_pods_spread_over_zones() -> None:
    world = World()
    world.build(zones("z1", "z1", "z1", "z2"))
    said = {"labels": {"app": "web"}, "topologySpreadConstraints": spread(ZONE, 1)}
    where = [world.place(f"w{at}", said).node for at in range(6)]
    assert where.count("n3") == 3


def test_a_plugin_that_ranks_is_normalised_as_policy_says() -> None:
    turned = {"name": "PodTopologySpread", "weight": 1000, "normalize": "ReverseMinMax"}
    world = World(policies({"scores": [turned]}))
    world.build({"nodes": {"a": {"labels": {HOST: "a"}}, "b": {"labels": {HOST: "b"}}}})
    said = {"labels": {"app": "web"}, "topologySpreadConstraints": spread(HOST, 1, hard=False)}
    first = world.place("web-0", said).node
    assert [world.place(f"web-{at}", said).node for at in (1, 2)] == [first, first]


def test_preferred_spread_outweighs_room_and_refuses_nobody() -> None:
    world = World()
    world.build(zones("z1", "z1", ""))
    said = {"labels": {"app": "web"}, "topologySpreadConstraints": spread(HOST, 1, hard=False)}
    found = [world.place(f"w{at}", said) for at in range(4)]
    assert {one.node for one in found[:3]} == {"n0", "n1", "n2"}
    assert all(one.feasible == 3 for one in found)


@pytest.mark.parametrize("owned", [True, False])
def test_pods_of_a_controller_are_spread_by_default(owned: bool) -> None:
    world = World()
    world.build(zones("z1", "z2"))
    replicas = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    }

    def hear(state: ClusterState) -> None:
        state.workloads.set_controller("ReplicaSet", replicas)

    world.scheduler.set_state(hear, Event.POD_CHANGED)
    owners = [{"kind": "ReplicaSet", "name": "web", "controller": True}] if owned else []
    decision = world.place("w0", {"labels": {"app": "web"}, "owners": owners})
    parts = [name for name, _ in decision.best[0].parts]
    assert ("PodTopologySpread" in parts) == owned


def test_policy_says_how_pods_are_spread_by_default() -> None:
    world = World(policies({"parameters": {"requiredSpread": {"value": {ZONE: 1}}}}))
    world.build(zones("z1", "z1", "z2"))
    service = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    world.scheduler.set_state(lambda state: state.workloads.set_service(service), Event.POD_CHANGED)
    assert len({world.place(f"w{at}", {"labels": {"app": "web"}}).node for at in range(2)} & {"n2"}) == 1
    world.scheduler.set_state(
        lambda state: state.workloads.remove_service("default", "web"), Event.POD_CHANGED
    )
    assert world.place("w2", {"labels": {"app": "web"}}).feasible == 3


def test_a_parameter_of_the_wrong_kind_is_a_problem_that_names_it() -> None:
    world = World(policies({"parameters": {"hardPodAffinityWeight": 101}}))
    world.build(zones("z1"))
    near = [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}
    world.scheduler.set_pod(pod("x", {"affinity": affinity, "node": "n0", "phase": "Running"}))
    assert "`hardPodAffinityWeight`" in world.place("web", {"labels": {"app": "web"}}).problem


def test_equal_pods_with_a_port_take_a_node_each_and_wait_for_one_to_be_free() -> None:
    world = World()
    world.build(zones("", ""))
    ports = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    found = [world.place(f"w{at}", ports) for at in range(3)]
    assert {one.node for one in found} == {"n0", "n1", ""}
    world.pass_time(60)
    world.scheduler.remove_pod(("default", "w0"))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.node == found[0].node


def test_the_node_that_has_the_image() -> None:
    world = World()
    world.build(zones("", "", ""))
    for at in range(3):
        images = [{"names": ["web:latest"], "sizeBytes": 900 << 20}] if at == 1 else []
        labels = {"metadata": {"name": f"n{at}"}, "status": {"images": images, "allocatable": _ROOM}}
        world.scheduler.set_node(read_node(labels))
    decision = world.place("w", {"containers": [{"name": "main", "image": "web"}]})
    assert decision.node == "n1"
    assert "ImageLocality" in dict(decision.best[0].parts)
    world.scheduler.remove_node("n1")
    assert "ImageLocality" not in dict(
        world.place("v", {"containers": [{"name": "m", "image": "web"}]}).best[0].parts
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resourceClaims", [{"name": "gpu", "resourceClaimName": "gpu"}]),
        ("workloadRef", {"name": "train", "podGroup": "workers"}),
        ("schedulingGroup", {"podGroupName": "workers"}),
    ],
)
def test_what_is_not_supported_is_refused_and_said(field: str, value: Any) -> None:
    world = World(policies({"filters": [{"name": "Coscheduling", "enabled": False}]}))
    world.build(zones("", ""))
    decision = world.place("w", {field: value})
    assert not decision.placed
    (refused,) = decision.refusals
    assert refused.nodes == 2
    assert not refused.resolvable
    assert f"(spec.{field})" in decision.message
    world.pass_time(60)
    world.scheduler.set_pod(pod("other", {"node": "n0", "phase": "Running"}))
    world.scheduler.remove_pod(("default", "other"))
    assert world.scheduler.schedule_one() is None, "none of that helps"


def test_another_revision_knows_the_surroundings_still() -> None:
    world = World()
    world.build(zones("z1", "z2"))
    shy = {"labels": {"app": "web"}, "affinity": apart(HOST, app="web")}
    assert world.place("w0", shy).placed
    service = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    world.scheduler.set_state(lambda state: state.workloads.set_service(service), Event.POD_CHANGED)
    world.scheduler.replace_graph(policies({"parameters": {"requiredSpread": {"value": {ZONE: 1}}}}))
    second = world.place("w1", shy)
    assert second.feasible == 1
    assert not world.place("w2", shy).placed


_ROOM = {"cpu": "10", "memory": "10Gi", "pods": "110"}
