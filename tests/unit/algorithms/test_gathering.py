"""Gangs in a network: nobody is split who must not be, no node gets more than it offers, whatever order nodes come in."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from koordpolicy.algorithms.gathering import (
    Gathered,
    Gathering,
    GatherKey,
    Offers,
    Scattered,
    assigned,
    gather,
    must_gather,
    nearness,
)
from koordpolicy.algorithms.network_tree import NOWHERE, NetworkTree, network_tree
from koordpolicy.algorithms.room import room_for
from koordpolicy.model.network_topology import (
    CLUSTER_LAYER,
    MOST_LAYERS,
    NODE_LAYER,
    GatherRule,
    NetworkLayer,
    read_gather_rules,
    read_network_topology,
)
from koordpolicy.model.reading import ObjectError

LAYERS = (
    NetworkLayer("Block", "Spine", ("net/block", "block")),
    NetworkLayer(NODE_LAYER, "Block"),
    NetworkLayer("Spine", "", ("spine",)),
)
TIGHTEST = (GatherKey.MOST_EXISTING, GatherKey.LEAST_ROOM, GatherKey.HIGHEST_SCORE)
LARGEST = (GatherKey.MOST_EXISTING, GatherKey.MOST_ROOM, GatherKey.HIGHEST_SCORE)
PLACES = ["", CLUSTER_LAYER, "Spine", "Block", NODE_LAYER]


def tree_of(nodes: Mapping[str, Mapping[str, str]]) -> NetworkTree:
    found = network_tree(LAYERS, list(nodes), list(nodes.values()))
    assert found is not None
    return found


def column(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


# --- the tree ------------------------------------------------------------------------------------


def test_in_a_layer_a_name_is_one_place() -> None:
    tree = tree_of(
        {"n2": {"spine": "s2", "block": "b1"}, "n1": {"spine": "s1", "net/block": "b1", "block": "x"}}
    )
    assert [tree.path(leaf) for leaf in tree.leaves_of(2)] == [("s1", "b1", "n2"), ("s1", "b1", "n1")]
    assert [level.names for level in tree.levels] == [("",), ("s1",), ("b1",), ("n1", "n2")]
    assert [tree.levels[2].below(0).tolist(), tree.levels[3].below(0).tolist()] == [[0], [0, 1]]


@pytest.mark.parametrize(
    "layers",
    [
        [NetworkLayer("Block")],
        [NetworkLayer(NODE_LAYER, "Block"), NetworkLayer("Block", NODE_LAYER)],
        [NetworkLayer(NODE_LAYER, "Block"), NetworkLayer("Block", "Block")],
        [NetworkLayer(NODE_LAYER, "Block"), NetworkLayer("Block"), NetworkLayer("Spine")],
        [],
    ],
)
def test_what_is_no_chain_is_no_tree(layers: list[NetworkLayer]) -> None:
    assert network_tree(layers, ["n1"], [{"block": "b1"}]) is None


def test_topologies_are_read_with_places() -> None:
    def of(*layers: Mapping[str, object]) -> dict[str, object]:
        return {"metadata": {"name": "default"}, "spec": {"networkTopologySpec": list(layers)}}

    found = read_network_topology(
        of({"topologyLayer": "B", "parentTopologyLayer": "S", "labelKey": ["a", "b"]})
    )
    assert found.layers == (NetworkLayer("B", "S", ("a", "b")),)
    for wrong, at in (
        (of({}), "networkTopologySpec[0].topologyLayer"),
        (of({"topologyLayer": "B"}, {"topologyLayer": "B"}), "networkTopologySpec[1].topologyLayer"),
        (of(*({"topologyLayer": f"B{at}"} for at in range(MOST_LAYERS + 1))), "more than 16 layers"),
    ):
        with pytest.raises(ObjectError, match=at.replace("[", r"\[")):
            read_network_topology(wrong)


def test_rules_are_read_with_places() -> None:
    written = '{"gatherStrategy":[{"layer":"Spine","strategy":"MustGather"},{"layer":"Block","strategy":"PreferGather","podCountMultiple":4}]}'
    assert read_gather_rules(written, "spec") == (GatherRule("Spine", True), GatherRule("Block", False, 4))
    assert read_gather_rules("", "spec") == ()
    for wrong in (
        "[]",
        "{",
        '{"gatherStrategy":[{"podCountMultiple":-1}]}',
        '{"gatherStrategy":[{"layer":7}]}',
    ):
        with pytest.raises(ObjectError, match=r"^spec: "):
            read_gather_rules(wrong, "spec")


def test_the_deepest_layer_binds() -> None:
    tree = tree_of({"n1": {"spine": "s1", "block": "b1"}})
    rules = [GatherRule("Block", True), GatherRule("Spine", True), GatherRule(NODE_LAYER, False)]
    assert must_gather(tree, rules) == "Block"
    assert must_gather(tree, []) == must_gather(tree, rules[2:]) == CLUSTER_LAYER
    assert must_gather(tree, [*rules, GatherRule("Rack", True)]) == "Rack", (
        "no place is in a layer that there is not"
    )
    assert gather(tree, Offers.of(column(3)), 1, Gathering("Rack")) == Scattered("Rack")


# --- gangs ---------------------------------------------------------------------------------------

NODES = st.lists(
    st.fixed_dictionaries(
        {
            "spine": st.sampled_from(["s1", "s2", ""]),
            "block": st.sampled_from(["b1", "b2", "b3", ""]),
            "slots": st.integers(0, 5),
            "existing": st.integers(0, 2),
            "score": st.integers(0, 2),
        }
    ),
    min_size=1,
    max_size=9,
)


def cluster(nodes: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Nodes by name; blocks of different spines have different names, as in a real network."""
    return {
        f"n{at}": {**node, "block": node["block"] and f"{node['spine']}-{node['block']}"}
        for at, node in enumerate(nodes)
    }


def offers_of(tree: NetworkTree, nodes: Mapping[str, Mapping[str, Any]]) -> Offers:
    columns = ([nodes[name][key] for name in tree.levels[-1].names] for key in ("slots", "existing", "score"))
    return Offers(*(np.array(one, np.int64) for one in columns))


def placed(
    nodes: Mapping[str, Mapping[str, Any]], wanted: int, layer: str, multiples: Mapping[str, int]
) -> tuple[NetworkTree, Gathered | Scattered]:
    tree = tree_of({name: {"spine": one["spine"], "block": one["block"]} for name, one in nodes.items()})
    return tree, gather(tree, offers_of(tree, nodes), wanted, Gathering(layer, TIGHTEST, LARGEST, multiples))


WANTED = st.integers(1, 10)
LAYER = st.sampled_from(PLACES[1:])
MULTIPLES = st.dictionaries(st.sampled_from(PLACES[1:]), st.integers(1, 3), max_size=2)


@given(nodes=NODES, wanted=WANTED, layer=LAYER, multiples=MULTIPLES)
def test_all_pods_find_room_in_one_place(
    nodes: list[dict[str, Any]], wanted: int, layer: str, multiples: dict[str, int]
) -> None:
    known = cluster(nodes)
    tree, found = placed(known, wanted, layer, multiples)
    if isinstance(found, Scattered):
        return
    names = tree.levels[-1].names
    assert sum(count for _, count in found.leaves) == wanted
    for leaf, count in found.leaves:
        assert count <= known[names[leaf]]["slots"], "no more than a node offers"
        assert count % multiples.get(NODE_LAYER, 1) == 0
    depth = PLACES.index(layer) - 1
    above = {("", *tree.path(leaf))[depth] for leaf, _ in found.leaves}
    assert len(above) == 1, "a gang that must not be split is not"
    assert PLACES.index(found.layer) >= PLACES.index(layer)


@given(nodes=NODES, wanted=WANTED, layer=LAYER)
def test_a_gang_stays_out_only_where_no_place_takes_it(
    nodes: list[dict[str, Any]], wanted: int, layer: str
) -> None:
    known = cluster(nodes)
    tree, found = placed(known, wanted, layer, {})
    room: dict[str, int] = {}
    depth = PLACES.index(layer) - 1
    for leaf, name in enumerate(tree.levels[-1].names):
        place = ("", *tree.path(leaf))[depth]
        room[place] = room.get(place, 0) + min(known[name]["slots"], wanted)
    if isinstance(found, Scattered):
        assert found.roots == (room or ({"": 0} if depth == 0 else {}))
        assert found.most < wanted
    else:
        assert max(room.values()) >= wanted


@given(nodes=NODES, wanted=WANTED, layer=LAYER, multiples=MULTIPLES, seed=st.randoms(use_true_random=False))
def test_the_order_of_nodes_does_not_matter(
    nodes: list[dict[str, Any]], wanted: int, layer: str, multiples: dict[str, int], seed: Any
) -> None:
    known = cluster(nodes)
    order = list(known)
    seed.shuffle(order)
    mixed = {name: known[name] for name in order}
    assert placed(known, wanted, layer, multiples)[1] == placed(mixed, wanted, layer, multiples)[1]


@given(nodes=NODES, wanted=WANTED)
def test_no_place_farther_down_would_do(nodes: list[dict[str, Any]], wanted: int) -> None:
    """The tightest place is the deepest one, worked out from paths alone."""
    known = cluster(nodes)
    tree, found = placed(known, wanted, CLUSTER_LAYER, {})
    assume(isinstance(found, Gathered))
    assert isinstance(found, Gathered)
    room: dict[tuple[str, ...], int] = {}
    for leaf, name in enumerate(tree.levels[-1].names):
        path = tree.path(leaf)
        for depth in range(len(path) + 1):
            room[path[:depth]] = room.get(path[:depth], 0) + min(known[name]["slots"], wanted)
    deepest = max(len(path) for path, slots in room.items() if slots >= wanted)
    assert PLACES.index(found.layer) - 1 == deepest


def test_pods_fill_nodes_in_their_order() -> None:
    assert assigned(["a", "b", "c"], [(3, 1), (0, 9)]) == {"a": 3, "b": 0, "c": 0}


# --- single pods ---------------------------------------------------------------------------------


def test_a_pod_goes_near_the_others() -> None:
    tree = tree_of(
        {
            "n1": {"spine": "s1", "block": "b1"},
            "n2": {"spine": "s1", "block": "b1"},
            "n3": {"spine": "s1", "block": "b2"},
            "n4": {"spine": "s2", "block": "b3"},
            "n5": {"block": "b3"},
        }
    )
    leaves = tree.leaves_of(5)
    assert leaves.tolist() == [0, 1, 2, 3, NOWHERE]
    assert nearness(tree, leaves, column(0, 2, 0, 0), TIGHTEST).tolist() == [75, 100, 50, 25, 0]
    # Without any, the tightest spine first, then the tightest block.
    assert nearness(tree, leaves, column(0, 0, 0, 0), TIGHTEST).tolist() == [50, 25, 75, 100, 0]
    assert nearness(tree, leaves, column(0, 0, 0, 0), ()).tolist() == [100, 75, 50, 25, 0], "by name"
    assert nearness(tree, column(NOWHERE), column(0, 0, 0, 0), TIGHTEST).tolist() == [100]


# --- room ----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 4), max_size=6), st.lists(st.integers(-2, 12), min_size=1, max_size=5))
def test_room_is_counted_as_if_pods_came_one_by_one(needs: list[int], free: list[int]) -> None:
    def alone(left: int) -> int:
        for count, need in enumerate(needs):
            if need > 0 and need > left:
                return count
            left -= need
        return len(needs)

    assert room_for(needs, column(*free)).tolist() == [alone(left) for left in free]
