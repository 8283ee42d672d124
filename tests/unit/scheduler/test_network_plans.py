"""Plans of gangs over a scheduler's nodes: what filters say and what is free is kept to, and what prevents a plan is told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.gathering import GangNetwork, Gathering, GatherKey
from koordpolicy.cluster.events import Event
from koordpolicy.model.network_topology import GatherRule, NetworkTopology
from koordpolicy.model.protocol import GANG_TOPOLOGY_INDEX
from koordpolicy.scheduler.plugins.topology.plan import GangPlan, NoPlan, Planner
from koordpolicy.scheduler.plugins.topology.status import place_details
from tests.unit.scheduler.test_neighbours import HOST, apart
from tests.unit.scheduler.test_network import LAYERS, NODES, TOPOLOGY
from tests.unit.scheduler.world import World, pod

ORDER = Gathering(
    candidates=(GatherKey.MOST_EXISTING, GatherKey.LEAST_ROOM),
    filling=(GatherKey.MOST_EXISTING, GatherKey.MOST_ROOM),
)
IN_ONE_SPINE = GangNetwork((GatherRule("Spine", must=True),), ORDER)


def world(cpus: dict[str, int] | None = None) -> World:
    """The nodes of the network with so many cores, 2 where nothing is said."""
    found = World()
    nodes = {
        name: {"labels": {**said.get("labels", {}), HOST: name}, "allocatable": {"cpu": str((cpus or {}).get(name, 2)), "memory": "99Gi"}}
        for name, said in NODES.items()
    }  # fmt: skip
    found.build({"nodes": nodes})
    found.scheduler.set_state(lambda state: state.network.set_topology(TOPOLOGY), Event.NETWORK_CHANGED)
    return found


def plan(made: World, how: GangNetwork, *pods: tuple[str, dict[str, Any]]) -> GangPlan | NoPlan:
    framework = made.scheduler.framework
    views = [framework.view(pod(name, said)) for name, said in pods]
    before = {
        name: dict(row)
        for name in NODES
        for row in [made.scheduler.cache.table.row(made.scheduler.cache.table.index(name))]
    }
    found = Planner(framework.cache, framework.filters).plan(views, how, made.now)
    after = {
        name: dict(row)
        for name in NODES
        for row in [made.scheduler.cache.table.row(made.scheduler.cache.table.index(name))]
    }
    assert before == after, "nothing is changed"
    assert found is not None, "the network is no wish"
    return found


def equal(count: int, **said: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(f"p{at:02}", dict(said)) for at in range(count)]


def nodes_of(found: GangPlan | NoPlan) -> dict[str, str]:
    assert isinstance(found, GangPlan), found
    return {key[1]: node for key, node in found.nodes.items()}


def test_all_pods_go_within_one_place() -> None:
    found = plan(world(), IN_ONE_SPINE, *equal(5))
    assert isinstance(found, GangPlan)
    assert (found.layer, found.place) == ("Spine", "s1")
    assert nodes_of(found) == {"p00": "n1", "p01": "n1", "p02": "n2", "p03": "n2", "p04": "n3"}


@pytest.mark.parametrize(
    ("rules", "count", "why"),
    [
        ([GatherRule("Spine", must=True)], 8, "2 of 8 pods find no node in one Spine: s1 takes 6, s2 takes 2"),
        ([GatherRule("Block", must=True)], 5, "1 of 5 pods find no node in one Block: b1 takes 4, b2 takes 2, b3 takes 2"),
        ([], 9, "1 of 9 pods find no node in the network"),
        ([GatherRule("Rack", must=True)], 1, "the network has no layer Rack"),
        (
            [GatherRule("Spine", must=True), GatherRule("Block", multiple=4)],
            6,
            "2 of 6 pods find no node in one Spine: s1 takes 4, s2 takes 0; Block takes 4 at a time",
        ),
        ([GatherRule("NodeTopologyLayer", multiple=2)], 3, "3 pods cannot be divided so: NodeTopologyLayer takes 2 at a time"),
    ],
)  # fmt: skip
def test_what_prevents_a_plan_is_told(rules: list[GatherRule], count: int, why: str) -> None:
    assert plan(world(), GangNetwork(tuple(rules), ORDER), *equal(count)) == NoPlan(why)


def test_without_a_network_there_is_no_plan() -> None:
    made = world()
    made.scheduler.set_state(lambda state: state.network.remove_topology("default"), Event.NETWORK_CHANGED)
    assert plan(made, IN_ONE_SPINE, *equal(1)) == NoPlan("no cluster network topology")
    broken = NetworkTopology("default", LAYERS[:1] + LAYERS[2:])
    made.scheduler.set_state(lambda state: state.network.set_topology(broken), Event.NETWORK_CHANGED)
    assert plan(made, IN_ONE_SPINE, *equal(1)) == NoPlan("no cluster network topology")


def test_pods_that_keep_apart_take_a_node_each() -> None:
    said = {"labels": {"app": "ring"}, "affinity": apart(HOST, app="ring")}
    found = plan(world(), IN_ONE_SPINE, *equal(3, **said))
    assert sorted(nodes_of(found).values()) == ["n1", "n2", "n3"]
    assert plan(world(), IN_ONE_SPINE, *equal(4, **said)) == NoPlan(
        "1 of 4 pods find no node in one Spine: s1 takes 3, s2 takes 2"
    )


def test_pods_may_differ() -> None:
    made = world({"n1": 3, "n2": 3, "n3": 3, "n4": 9})
    large, small = {"request": {"cpu": "3"}}, {"request": {"cpu": "1"}}
    only = {**small, "nodeSelector": {"block": "b2"}}
    assert nodes_of(plan(made, IN_ONE_SPINE, ("a", large), ("b", small), ("c", large))) == {
        "a": "n4", "b": "n4", "c": "n4",
    }  # fmt: skip
    found = nodes_of(
        plan(made, IN_ONE_SPINE, ("a", {**only, "annotations": {GANG_TOPOLOGY_INDEX: "1"}}), ("b", only))
    )
    assert set(found.values()) == {"n3"}, "no other node is in the block that they want"


def test_pods_that_are_there_draw_the_gang() -> None:
    made = world()
    group = {"annotations": {"scheduling.koordinator.sh/network-topology-selector": "ring"}}
    made.scheduler.set_pod(pod("there", {**group, "request": {"cpu": "0"}, "node": "n3", "phase": "Running"}))
    assert set(nodes_of(plan(made, IN_ONE_SPINE, *equal(2, **group))).values()) == {"n3"}
    assert set(nodes_of(plan(made, IN_ONE_SPINE, *equal(2))).values()) == {"n4"}


def test_the_status_lists_all_places() -> None:
    tree = world().scheduler.cache.state.network.tree
    found = place_details(tree)
    assert [(one["topologyInfo"]["topologyName"], one["nodeNum"]) for one in found] == [
        ("", 4), ("s1", 3), ("b1", 2), ("b2", 1), ("s2", 1), ("b3", 1),
    ]  # fmt: skip
    assert found[0] == {
        "topologyInfo": {"topologyLayer": "ClusterTopologyLayer", "topologyName": ""},
        "childTopologyLayer": "Spine",
        "childTopologyNames": ["s1", "s2"],
        "nodeNum": 4,
    }
    assert found[2] == {
        "topologyInfo": {"topologyLayer": "Block", "topologyName": "b1"},
        "parentTopologyInfo": {"topologyLayer": "Spine", "topologyName": "s1"},
        "childTopologyLayer": "NodeTopologyLayer",
        "nodeNum": 2,
    }
    assert place_details(None) == []


@given(
    cpus=st.fixed_dictionaries({name: st.integers(0, 4) for name in NODES}),
    wanted=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    layer=st.sampled_from(["ClusterTopologyLayer", "Spine", "Block", "NodeTopologyLayer"]),
)
def test_a_plan_is_kept_to_by_the_filters(cpus: dict[str, int], wanted: list[int], layer: str) -> None:
    """Each pod of a plan passes all filters on its node with those before it placed, and no gang is split that must not be."""
    made = world(cpus)
    pods = [(f"p{at}", {"request": {"cpu": str(amount)}}) for at, amount in enumerate(wanted)]
    found = plan(made, GangNetwork((GatherRule(layer, must=True),), ORDER), *pods)
    if isinstance(found, NoPlan):
        assert "find no node in" in found.reason
        return
    nodes = nodes_of(found)
    assert len(nodes) == len(wanted)
    taken = dict.fromkeys(NODES, 0)
    for name, said in pods:
        taken[nodes[name]] += int(said["request"]["cpu"])
    assert all(amount <= cpus[name] for name, amount in taken.items())
    tree = made.scheduler.cache.state.network.tree
    assert tree is not None
    depth = tree.depth(layer)
    assert depth is not None
    paths = [("", *tree.path(tree.levels[-1].names.index(node))) for node in nodes.values()]
    assert len({path[: depth + 1] for path in paths}) == 1
