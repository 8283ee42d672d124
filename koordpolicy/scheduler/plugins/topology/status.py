"""The places of the network as the status of its ClusterNetworkTopology lists them."""

from collections.abc import Iterator
from typing import Any

from koordpolicy.algorithms.network_tree import NetworkTree, TreeLevel


def place_details(tree: NetworkTree | None) -> list[dict[str, Any]]:
    """All places but nodes, each before those within it, these by name; none without a tree."""
    if tree is None:
        return []
    nodes = tree.sums(tree.rows * 0 + 1)
    return list(_below(tree, 0, 0, [one.tolist() for one in nodes]))


def _below(tree: NetworkTree, depth: int, place: int, nodes: list[list[int]]) -> Iterator[dict[str, Any]]:
    levels = tree.levels
    if depth + 1 == len(levels):
        return
    level, inner = levels[depth], levels[depth + 1]
    within = inner.below(place).tolist()
    found: dict[str, Any] = {"topologyInfo": _named(level, place)}
    if depth:
        found["parentTopologyInfo"] = _named(levels[depth - 1], int(level.parents[place]))
    found["childTopologyLayer"] = inner.layer
    if depth + 2 < len(levels):
        found["childTopologyNames"] = [inner.names[one] for one in within]
    found["nodeNum"] = nodes[depth][place]
    yield found
    for one in within:
        yield from _below(tree, depth + 1, one, nodes)


def _named(level: TreeLevel, place: int) -> dict[str, str]:
    return {"topologyLayer": level.layer, "topologyName": level.names[place]}
