"""The network of a cluster as the scheduler knows it: kept from events, and what single pods make of it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.network_tree import network_tree
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.network import ClusterNetwork
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import CLUSTER_NETWORK_TOPOLOGIES
from koordpolicy.model.network_topology import (
    NODE_LAYER,
    NetworkLayer,
    NetworkTopology,
    read_network_topology,
)
from koordpolicy.model.protocol import NETWORK_TOPOLOGY_SELECTOR
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.network_status import NetworkStatus
from tests.unit.scheduler.world import World, node, pod, policies

LAYERS = (
    NetworkLayer(NODE_LAYER, "Block"),
    NetworkLayer("Block", "Spine", ("block",)),
    NetworkLayer("Spine", "", ("spine",)),
)
TOPOLOGY = NetworkTopology("default", LAYERS)
NODES = {
    "n1": {"labels": {"spine": "s1", "block": "b1"}},
    "n2": {"labels": {"spine": "s1", "block": "b1"}},
    "n3": {"labels": {"spine": "s1", "block": "b2"}},
    "n4": {"labels": {"spine": "s2", "block": "b3"}},
    "n5": {},
}
GROUPED = {"annotations": {NETWORK_TOPOLOGY_SELECTOR: "ring"}}
NOTHING_ELSE = {
    "scores": [
        {"name": name, "enabled": False}
        for name in (
            "LoadAwareScheduling", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "PodTopologySpread", "TaintToleration",
        )
    ],
    "ties": "First",
}  # fmt: skip


def world(**parameters: Any) -> World:
    found = World(policies(NOTHING_ELSE, {"parameters": parameters}))
    found.build({"nodes": NODES})
    found.scheduler.set_state(lambda state: state.network.set_topology(TOPOLOGY), Event.NETWORK_CHANGED)
    return found


def test_pods_of_a_group_are_placed_near_each_other() -> None:
    made = world()
    assert made.place("first", GROUPED).node == "n4", "where it takes least room from others"
    assert made.place("second", GROUPED).node == "n4"
    full = {**GROUPED, "request": {"cpu": "9"}}
    assert made.place("third", full).node == "n3", (
        "no node of the spine is left, nor of any other one with the group"
    )
    assert made.place("fourth", full).node in ("n1", "n2"), "the same spine as the third"
    assert made.place("other", {}).node == "n1", "a pod without a group is placed as ever"


def test_policy_says_what_places_are_compared_by() -> None:
    made = world(networkOrder=["MostRoom"])
    assert made.place("first", GROUPED).node == "n1"
    named = {"name": "NetworkTopology", "parameters": {"order": {"cel": "[pod.namespace]"}}}
    wrong = World(policies({"scores": [named]}))
    wrong.build({"nodes": NODES})
    wrong.scheduler.set_state(lambda state: state.network.set_topology(TOPOLOGY), Event.NETWORK_CHANGED)
    assert "`order` names `default`; that may be `MostExisting` or" in wrong.place("p", GROUPED).problem


def test_a_group_says_nothing_where_no_network_is_known() -> None:
    made = world()
    made.scheduler.set_state(lambda state: state.network.remove_topology("default"), Event.NETWORK_CHANGED)
    assert made.place("first", GROUPED).node == "n1"
    other = NetworkTopology("other", LAYERS)
    made.scheduler.set_state(lambda state: state.network.set_topology(other), Event.NETWORK_CHANGED)
    assert made.scheduler.cache.state.network.topology is None, "only the one of the name `default` is used"
    broken = NetworkTopology("default", LAYERS[:1] + LAYERS[2:])
    made.scheduler.set_state(lambda state: state.network.set_topology(broken), Event.NETWORK_CHANGED)
    assert made.place("second", GROUPED).placed


def test_trials_and_changes_of_pods_leave_no_trace() -> None:
    made = world()
    state, cache = made.scheduler.cache.state, made.scheduler.cache

    def groups() -> dict[str, list[int]]:
        tree = state.network.tree
        assert tree is not None
        return {name: state.network.existing(name, tree).tolist() for name in ("ring", "star")}

    on_node = {**GROUPED, "node": "n2", "phase": "Running"}
    made.scheduler.set_pod(pod("a", on_node))
    assert groups() == {"ring": [0, 1, 0, 0], "star": [0, 0, 0, 0]}
    with cache.trial():
        cache.displace(("default", "a"))
        assert groups()["ring"] == [0, 0, 0, 0]
    assert groups()["ring"] == [0, 1, 0, 0]
    made.scheduler.set_pod(pod("a", {**on_node, "annotations": {NETWORK_TOPOLOGY_SELECTOR: "star"}}))
    assert groups() == {"ring": [0, 0, 0, 0], "star": [0, 1, 0, 0]}
    made.scheduler.remove_node("n1")
    assert groups()["star"] == [1, 0, 0]
    made.scheduler.set_node(node("n2", {"labels": {"spine": "s2", "block": "b3"}}))
    tree = state.network.tree
    assert tree is not None
    assert tree.path(0) == ("s2", "b3", "n2")
    made.scheduler.remove_pod(("default", "a"))
    assert groups()["star"] == [0, 0, 0]


EVENTS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from(["b1", "b2", "", None])), min_size=1, max_size=20
)


@given(EVENTS)
def test_the_tree_is_that_of_the_nodes_that_are_there(events: list[tuple[str, str | None]]) -> None:
    """Nodes come, change their labels and go (None); what is kept is what is made anew of them."""
    kept = ClusterNetwork()
    kept.set_topology(TOPOLOGY)
    rows: list[str] = []
    labels: dict[str, Mapping[str, str]] = {}
    for name, block in events:
        if block is None:
            if name in rows:
                row, last = rows.index(name), len(rows) - 1
                rows[row] = rows[last]
                rows.pop()
                kept.drop(row, last)
        else:
            labels[name] = {"spine": "s", "block": block}
            if name not in rows:
                rows.append(name)
            kept.put(rows.index(name), name, labels[name])
        made = network_tree(LAYERS, rows, [labels[one] for one in rows])
        tree = kept.tree
        assert made is not None
        assert tree is not None
        assert [level.names for level in tree.levels] == [level.names for level in made.levels]
        assert all(
            np.array_equal(one.parents, other.parents)
            for one, other in zip(tree.levels, made.levels, strict=True)
        )
        assert tree.rows.tolist() == made.rows.tolist()


def test_the_status_is_written_where_it_is_another_one() -> None:
    async def run() -> None:
        made = world()
        cluster = MemoryCluster(Store(lambda: made.now / NANOSECONDS))
        written = {
            "metadata": {"name": "default"},
            "spec": {
                "networkTopologySpec": [
                    {
                        "topologyLayer": one.name,
                        "parentTopologyLayer": one.parent,
                        "labelKey": list(one.label_keys),
                    }
                    for one in LAYERS
                ]
            },
        }

        def hear(obj: Mapping[str, Any]) -> None:
            topology = read_network_topology(obj)
            made.scheduler.set_state(
                lambda state: state.network.set_topology(topology), Event.NETWORK_CHANGED
            )

        hear(await cluster.create(CLUSTER_NETWORK_TOPOLOGIES, written))
        status = NetworkStatus(made.scheduler, cluster)
        assert await status.write()
        stored = await cluster.get(CLUSTER_NETWORK_TOPOLOGIES, "default")
        assert [one["nodeNum"] for one in stored["status"]["detailStatus"]] == [4, 3, 2, 1, 1, 1]
        hear(stored)
        assert not await status.write(), "nothing is written twice"
        made.scheduler.remove_node("n1")
        assert await status.write()
        made.scheduler.set_state(
            lambda state: state.network.remove_topology("default"), Event.NETWORK_CHANGED
        )
        assert not await status.write()

    asyncio.run(run())
