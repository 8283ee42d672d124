"""The network of a cluster as a tree: a level a layer, the cluster above, its nodes below.

A level has its topology nodes in the order of their names, so that an index says who comes first by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column
from koordpolicy.model.network_topology import CLUSTER_LAYER, NODE_LAYER, NetworkLayer

NOWHERE: Final = -1
"""The leaf of a node that is not in the tree."""


@dataclass(frozen=True)
class TreeLevel:
    """The topology nodes of one layer by name. `parents` are their places in the level above; 0 for the root."""

    layer: str
    names: tuple[str, ...]
    parents: Column

    @cached_property
    def _by_parent(self) -> Column:
        return np.argsort(self.parents, kind="stable")

    @cached_property
    def _starts(self) -> Column:
        return np.searchsorted(self.parents[self._by_parent], np.arange(self.parents.max(initial=0) + 2))

    def below(self, parent: int) -> Column:
        """The places here of those below one of the level above."""
        starts = self._starts
        if parent + 1 >= len(starts):
            return self._by_parent[:0]
        return self._by_parent[starts[parent] : starts[parent + 1]]


@dataclass(frozen=True)
class NetworkTree:
    """The levels from the root down to the nodes. `rows` says which of the nodes that it was made of each leaf is."""

    levels: tuple[TreeLevel, ...]
    rows: Column

    @cached_property
    def _depths(self) -> Mapping[str, int]:
        return {level.layer: depth for depth, level in enumerate(self.levels)}

    @property
    def leaves(self) -> int:
        """How many nodes are in it."""
        return len(self.rows)

    def depth(self, layer: str) -> int | None:
        """Which level a layer is, from 0; None when there is none."""
        return self._depths.get(layer)

    def leaves_of(self, count: int) -> Column:
        """The leaf of each of the so many nodes that it was made of, or `NOWHERE`."""
        found = np.full(count, NOWHERE, np.int64)
        found[self.rows] = np.arange(self.leaves)
        return found

    def sums(self, values: Column) -> tuple[Column, ...]:
        """What all leaves below each topology node have together, level by level, of what each leaf has."""
        found = [values]
        for depth in range(len(self.levels) - 1, 0, -1):
            total = np.zeros(len(self.levels[depth - 1].names), np.int64)
            np.add.at(total, self.levels[depth].parents, found[0])
            found.insert(0, total)
        return tuple(found)

    def upwards(self, depth: int, places: Column) -> list[Column]:
        """Some topology nodes of a level, and then whom they stand below, level by level up to the root."""
        found = [places]
        for level in reversed(self.levels[1 : depth + 1]):
            found.append(level.parents[found[-1]])
        return found

    def path(self, leaf: int) -> tuple[str, ...]:
        """The names from the level below the root down to a leaf."""
        depth = len(self.levels) - 1
        upwards = self.upwards(depth, np.array([leaf]))
        return tuple(
            level.names[int(place[0])]
            for level, place in zip(self.levels[1:], reversed(upwards[:-1]), strict=True)
        )


def ordered_layers(layers: Iterable[NetworkLayer]) -> tuple[NetworkLayer, ...] | None:
    """The layers from the top down to that of nodes; None when they are not one chain that ends there."""
    by_name = {layer.name: layer for layer in layers}
    chain: list[NetworkLayer] = []
    layer = by_name.get(NODE_LAYER)
    while layer is not None and len(chain) < len(by_name):
        chain.append(layer)
        layer = by_name.get(layer.parent)
    if layer is not None or len(chain) != len(by_name) or not chain:
        return None
    return tuple(reversed(chain))


def path_of(layers: Sequence[NetworkLayer], name: str, labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """Where a node stands by its labels, from the top layer down to its own name; None when that cannot be said.

    A node without a place in the layer right above has one of its own there, of its name; one without a place farther up is
    in no tree.
    """
    found = []
    for at, layer in enumerate(layers[:-1]):
        place = next((labels[key] for key in layer.label_keys if labels.get(key)), "")
        if not place:
            if at < len(layers) - 2:
                return None
            place = name
        found.append(place)
    return (*found, name)


def network_tree(
    layers: Iterable[NetworkLayer], names: Sequence[str], labels: Sequence[Mapping[str, str]]
) -> NetworkTree | None:
    """The tree of nodes with these names and labels; None when the layers are not one chain.

    In a layer a name is one topology node. Where nodes disagree on what is above it, the one counts whose name is the first,
    so that the tree is the same in whatever order nodes come.
    """
    ordered = ordered_layers(layers)
    if ordered is None:
        return None
    above: list[dict[str, str]] = [{} for _ in ordered]
    leaves: list[int] = []
    for row in sorted(range(len(names)), key=names.__getitem__):
        path = path_of(ordered, names[row], labels[row])
        if path is None:
            continue
        leaves.append(row)
        for depth in range(len(path) - 1, -1, -1):
            if path[depth] in above[depth]:
                break
            above[depth][path[depth]] = path[depth - 1] if depth else ""
    levels = [TreeLevel(CLUSTER_LAYER, ("",), np.zeros(1, np.int64))]
    places = {"": 0}
    for layer, parents in zip(ordered, above, strict=True):
        inside = tuple(sorted(parents))
        column = np.array([places[parents[name]] for name in inside], np.int64)
        levels.append(TreeLevel(layer.name, inside, column))
        places = {name: place for place, name in enumerate(inside)}
    return NetworkTree(tuple(levels), np.array(leaves, np.int64))
