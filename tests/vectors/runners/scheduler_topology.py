"""Runners of the network of a cluster: its tree, and where the pods of a gang go in it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordpolicy.algorithms.gathering import (
    Gathering,
    GatherKey,
    Offers,
    Scattered,
    assigned,
    gather,
    with_members,
)
from koordpolicy.algorithms.member_order import member_key
from koordpolicy.algorithms.network_tree import NetworkTree, TreeLevel, network_tree
from koordpolicy.model.network_topology import CLUSTER_LAYER, NODE_LAYER, NetworkLayer
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

_CANDIDATES = (GatherKey.MOST_EXISTING, GatherKey.LEAST_ROOM, GatherKey.HIGHEST_SCORE)
_FILLING = (GatherKey.MOST_EXISTING, GatherKey.MOST_ROOM, GatherKey.HIGHEST_SCORE)


def topology_tree_path(given: Given) -> Given:
    layers = [NetworkLayer(one["layer"], one["parent"], tuple(one["label_keys"])) for one in given["layers"]]
    names = [one["name"] for one in given["nodes"]]
    tree = network_tree(layers, names, [dict(one["labels"]) for one in given["nodes"]])
    if tree is None:
        return {"paths": None}
    leaves = tree.leaves_of(len(names)).tolist()
    return {
        "paths": {
            name: None if leaf < 0 else list(tree.path(leaf))
            for name, leaf in zip(names, leaves, strict=True)
        }
    }


def topology_placement(given: Given) -> Given:
    tree, nodes = _tree(given["tree"])
    pods = list(given["pods"])
    slots = np.array([node["slot"] for node in nodes], np.int64)
    existing = np.array([node.get("existing", 0) for node in nodes], np.int64)
    scores = np.array([node.get("score", 0) for node in nodes], np.int64)
    if existing.any():
        existing = with_members(existing, slots, len(pods))
    found = gather(
        tree,
        Offers(slots, existing, scores),
        len(pods),
        Gathering(given["must_gather"] or CLUSTER_LAYER, _CANDIDATES, _FILLING, dict(given["multiples"])),
    )
    if isinstance(found, Scattered):
        return {"chosen": None, "roots": found.roots}
    names = tree.levels[-1].names
    return {
        "chosen": found.name,
        "pods": {pod: names[leaf] for pod, leaf in assigned(sorted(pods), found.leaves).items()},
    }


def _tree(root: Given) -> tuple[NetworkTree, list[Given]]:
    """The tree of a vector, and its leaves in the order that the tree has."""
    levels, nodes, above = [], [root], {"": 0}
    parents = {id(root): ""}
    while nodes:
        nodes = sorted(nodes, key=lambda one: one["name"])
        column = np.array([above[parents[id(one)]] for one in nodes], np.int64)
        levels.append(TreeLevel(nodes[0]["layer"], tuple(one["name"] for one in nodes), column))
        below = [(child, one["name"]) for one in nodes for child in one.get("children", ())]
        if not below:
            break
        above = {one["name"]: place for place, one in enumerate(nodes)}
        nodes = [child for child, _ in below]
        parents = {id(child): name for child, name in below}
    assert levels[-1].layer == NODE_LAYER
    return NetworkTree(tuple(levels), np.arange(len(nodes))), nodes


def member_order(given: Given) -> Given:
    order = sorted(given["pods"], key=lambda one: member_key(one["name"], one.get("index", "")))
    return {"order": [one["name"] for one in order]}


RUNNERS: Mapping[str, Runner] = {
    "topology_tree_path": Runner(topology_tree_path),
    "topology_placement": Runner(topology_placement),
    "member_order": Runner(member_order),
}
