"""Gangs that say how they are gathered in the network: within one place as a whole, or nowhere, and told why."""

import json
from typing import Any

import pytest

from koordpolicy.cluster.events import Event
from koordpolicy.model.gang import read_pod_group
from koordpolicy.model.protocol import GANG_TOPOLOGY_SPEC
from tests.unit.scheduler.test_gangs import Ganged, pod_group
from tests.unit.scheduler.test_neighbours import HOST
from tests.unit.scheduler.test_network import NODES, TOPOLOGY
from tests.unit.scheduler.world import node, pod

NAMES = [f"p{at}" for at in range(8)]


def world(rules: list[dict[str, Any]], minimum: int, **parameters: object) -> Ganged:
    """The nodes of the network with two cores each, and a PodGroup `a` that is gathered by these rules."""
    made = Ganged(**{"awareNetworkTopology": True, **parameters})
    for name, said in NODES.items():
        labels = {**said.get("labels", {}), HOST: name}
        made.scheduler.set_node(node(name, {"labels": labels, "allocatable": {"cpu": "2", "memory": "99Gi"}}))
    made.scheduler.set_state(lambda state: state.network.set_topology(TOPOLOGY), Event.NETWORK_CHANGED)
    written = pod_group("a", minimum)
    written["metadata"]["annotations"][GANG_TOPOLOGY_SPEC] = json.dumps({"gatherStrategy": rules})
    found = read_pod_group(written)
    made.scheduler.set_state(lambda state: state.pod_groups.set(found), Event.POD_GROUP_CHANGED)
    return made


def spines(made: Ganged, names: list[str]) -> set[str]:
    nodes = [made.scheduler.cache.node_of(("default", name)) for name in names]
    return {NODES[str(one)].get("labels", {}).get("spine", "") for one in nodes}


@pytest.mark.parametrize("placement", ["OneByOne", "AtOnce"])
@pytest.mark.parametrize("count", [2, 4, 6])
def test_a_gang_is_placed_within_one_place(placement: str, count: int) -> None:
    made = world([{"layer": "Spine", "strategy": "MustGather"}], count, placement=placement)
    for name in NAMES[:count]:
        made.come(name, "a")
    assert made.run() == NAMES[:count]
    assert spines(made, NAMES[:count]) == ({"s2"} if count == 2 else {"s1"}), "the tightest one"
    assert not made.scheduler.cache.state.network.planned, "plans end with their round"


@pytest.mark.parametrize("placement", ["OneByOne", "AtOnce"])
def test_a_gang_that_fits_into_no_place_holds_nothing_and_is_told_why(placement: str) -> None:
    made = world([{"layer": "Spine", "strategy": "MustGather"}], 8, placement=placement)
    for name in NAMES:
        made.come(name, "a")
    assert made.run() == []
    assert (
        "node(s) where 2 of 8 pods find no node in one Spine: s1 takes 6, s2 takes 2" in made.messages["p0"]
    )
    assert all("gang default/a does not fit" in made.messages[name] for name in NAMES[1:])
    assert made.scheduler.cache.pod_count == 0
    for at in (6, 7):  # a node of the spine more, and the gang is in
        labels = {"spine": "s1", "block": "b2", HOST: f"n{at}"}
        made.scheduler.set_node(
            node(f"n{at}", {"labels": labels, "allocatable": {"cpu": "1", "memory": "9Gi"}})
        )
    made.pass_time(30)
    assert made.run() == NAMES


def test_a_gang_comes_back_once_room_within_one_place_is_made() -> None:
    made = world([{"layer": "Spine", "strategy": "MustGather"}], 6)
    made.come("other", {"node": "n1", "phase": "Running"})
    for name in NAMES[:6]:
        made.come(name, "a")
    assert made.run() == []
    made.go("other")
    made.pass_time(30)
    assert made.run() == NAMES[:6]


def test_others_are_placed_as_ever() -> None:
    made = world([{"layer": "Spine", "strategy": "MustGather"}], 2)
    for name in NAMES[:3]:
        made.come(name, "")
    made.group("b", 2)
    for name in NAMES[3:5]:
        made.come(name, "b")
    assert made.run() == NAMES[:5]


def test_it_is_off_unless_policy_says_so() -> None:
    made = world([{"layer": "Spine", "strategy": "MustGather"}], 8, awareNetworkTopology=False)
    for name in NAMES:
        made.come(name, "a")
    assert made.run() == NAMES


@pytest.mark.parametrize("placement", ["OneByOne", "AtOnce"])
def test_room_is_made_within_one_place(placement: str) -> None:
    made = world(
        [{"layer": "Spine", "strategy": "MustGather"}], 6, placement=placement, enablePreemption=True
    )
    for at in (1, 4):
        made.come(f"low{at}", {"node": f"n{at}", "phase": "Running", "priority": 10})
    for name in NAMES[:6]:
        made.come(name, "a")
    assert made.run() == []
    ledger = made.scheduler.ledger
    promised = {name: ledger.promised_to(("default", name)) for name in NAMES[:6]}
    assert {NODES[str(one)].get("labels", {}).get("spine", "") for one in promised.values()} == {"s1"}
    assert "is made by sending 1 pod away from 1 node" in made.messages["p0"], (
        "the one in another place stays"
    )
    going = [name for name in ("low1", "low4") if ledger.leaves(pod(name))]
    assert len(going) == 1
    made.go(going[0])
    made.pass_time(30)
    assert made.run() == NAMES[:6]
    assert spines(made, NAMES[:6]) == {"s1"}
    assert not ledger.promises


def test_nobody_goes_where_no_place_would_take_all() -> None:
    made = world([{"layer": "Spine", "strategy": "MustGather"}], 8, enablePreemption=True)
    made.come("low", {"node": "n1", "phase": "Running", "priority": 10})
    for name in NAMES:
        made.come(name, "a")
    assert made.run() == []
    assert (
        "nobody goes for gang default/a: without all who may go, 2 of 8 pods find no node"
        in made.messages["p0"]
    )
    assert not made.scheduler.ledger.promises
