"""Pods of a gang gathered in a network: the tightest topology node that takes all of them, and how many each of its nodes gets.

All columns have an element a leaf of the tree, or, level by level, a topology node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np

from koordpolicy.algorithms.columns import Column
from koordpolicy.algorithms.network_tree import NOWHERE, NetworkTree
from koordpolicy.algorithms.normalize import Scores, normalized
from koordpolicy.model.network_topology import CLUSTER_LAYER, GatherRule

Pod = TypeVar("Pod")

_NO_MULTIPLES: Final[Mapping[str, int]] = MappingProxyType({})


class GatherKey(StrEnum):
    """What topology nodes are ordered by. Where all that is asked for is equal, the first by name comes first."""

    MOST_EXISTING = "MostExisting"
    FEWEST_EXISTING = "FewestExisting"
    LEAST_ROOM = "LeastRoom"
    MOST_ROOM = "MostRoom"
    HIGHEST_SCORE = "HighestScore"
    LOWEST_SCORE = "LowestScore"


_MOST_FIRST: Final = frozenset({GatherKey.MOST_EXISTING, GatherKey.MOST_ROOM, GatherKey.HIGHEST_SCORE})
_ITS_OWN: Final = frozenset({GatherKey.HIGHEST_SCORE, GatherKey.LOWEST_SCORE})
"""Keys that are compared of topology nodes alone, and not of those above them."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """How pods are to be gathered: within one topology node of a layer; by which keys these are tried, and those within one
    filled; and, by layer, of how many pods at a time a topology node takes.
    """

    layer: str = CLUSTER_LAYER
    candidates: tuple[GatherKey, ...] = ()
    filling: tuple[GatherKey, ...] = ()
    multiples: Mapping[str, int] = field(default_factory=lambda: _NO_MULTIPLES)


@dataclass(frozen=True, slots=True)
class GangNetwork:
    """How a gang is gathered. `counts_members` is Koordinator's way to count pods of the gang itself among those that are there
    already. `shares` are node labels of which its nodes have one value, `wishes` those of which they have one where that can be;
    `in_network` says whether the cluster's network matters beside them.
    """

    rules: tuple[GatherRule, ...] = ()
    order: Gathering = field(default_factory=Gathering)
    counts_members: bool = False
    shares: tuple[str, ...] = ()
    wishes: tuple[str, ...] = ()
    in_network: bool = True

    @property
    def required(self) -> "GangNetwork | None":
        """The same without what is only wished for; None where nothing is left."""
        return replace(self, wishes=()) if self.in_network or self.shares else None


@dataclass(frozen=True, slots=True)
class Offers:
    """What each leaf has: room for so many of the pods, so many `existing` pods that these like to be near, a score."""

    slots: Column
    existing: Column
    scores: Column

    @classmethod
    def of(cls, slots: Column, existing: Column | None = None, scores: Column | None = None) -> "Offers":
        """Offers of which some are 0 everywhere."""
        nothing = np.zeros(len(slots), np.int64)
        return cls(slots, nothing if existing is None else existing, nothing if scores is None else scores)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Where all pods go: into which topology node, and how many onto which leaf, in the order in which these are filled."""

    layer: str
    name: str
    leaves: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Scattered:
    """No topology node takes all pods: how many each could that would have had to. `layer` is the one they stand in."""

    layer: str
    roots: Mapping[str, int] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """How many the one takes that takes most."""
        return max(self.roots.values(), default=0)


def must_gather(tree: NetworkTree, rules: Iterable[GatherRule]) -> str:
    """The layer in one topology node of which all pods have to be: the deepest of those that rules name.

    One that the tree lacks lies deeper than all others: no place is in it.
    """
    layers = [rule.layer for rule in rules if rule.must]
    missing = [layer for layer in layers if tree.depth(layer) is None]
    if missing:
        return missing[0]
    return max(layers, key=lambda layer: tree.depth(layer) or 0, default=CLUSTER_LAYER)


def gather(tree: NetworkTree, offers: Offers, wanted: int, how: Gathering) -> Gathered | Scattered:
    """Where `wanted` pods (1 or more) go together.

    They go as deep as one topology node takes all of them. Of several the first by the keys is taken in which they find their
    places; existing pods and room are compared upwards to the root, scores are the topology node's own. Multiples hold
    for the one that is taken and for all below it, not for what lies above.
    """
    steps = [max(how.multiples.get(level.layer, 1), 1) for level in tree.levels]
    slots = _room(tree, np.minimum(offers.slots, wanted), steps)
    depth = tree.depth(how.layer)
    if depth is None:
        return Scattered(how.layer)
    kept = np.flatnonzero(slots[depth] >= wanted)
    roots = depth
    while len(kept) and depth + 1 < len(tree.levels):
        inside = np.zeros(len(slots[depth]), np.bool_)
        inside[kept] = True
        deeper = np.flatnonzero(inside[tree.levels[depth + 1].parents] & (slots[depth + 1] >= wanted))
        if not len(deeper):
            break
        kept, depth = deeper, depth + 1
    view = _Ranked(tree, slots, tree.sums(offers.existing), tree.sums(offers.scores), steps, how)
    for place in view.ordered(depth, kept).tolist():
        leaves = view.filled(depth, place, wanted)
        if sum(count for _, count in leaves) >= wanted:
            return Gathered(tree.levels[depth].layer, tree.levels[depth].names[place], tuple(leaves))
    return Scattered(how.layer, dict(zip(tree.levels[roots].names, slots[roots].tolist(), strict=True)))


def _room(tree: NetworkTree, leaves: Column, steps: Sequence[int]) -> list[Column]:
    """How many pods each topology node takes, level by level, rounded down to what its layer takes at a time."""
    found = [leaves // steps[-1] * steps[-1]]
    for depth in range(len(tree.levels) - 1, 0, -1):
        total = np.zeros(len(tree.levels[depth - 1].names), np.int64)
        np.add.at(total, tree.levels[depth].parents, found[0])
        found.insert(0, total // steps[depth - 1] * steps[depth - 1])
    return found


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The tree with what is in it, level by level."""

    tree: NetworkTree
    slots: Sequence[Column]
    existing: Sequence[Column]
    scores: Sequence[Column]
    steps: Sequence[int]
    how: Gathering

    def ordered(self, depth: int, places: Column) -> Column:
        """Topology nodes of a level in the order in which they are tried."""
        upwards = list(zip(range(depth, -1, -1), self.tree.upwards(depth, places), strict=True))
        keys = [
            column
            for key in self.how.candidates
            for column in self._key(key, upwards[:1] if key in _ITS_OWN else upwards)
        ]
        return places[np.lexsort([places, *keys[::-1]])]

    def _key(self, key: GatherKey, at: Iterable[tuple[int, Column]]) -> list[Column]:
        """What topology nodes are compared by, one after the other; the smaller comes first."""
        numbers, sign = _compared(key, self.existing, self.slots, self.scores)
        return [numbers[level][places] * sign for level, places in at]

    def filled(self, depth: int, place: int, wanted: int) -> list[tuple[int, int]]:
        """The leaves below a topology node that so many pods go to, as far as they find room, and how many to each."""
        step = self.steps[depth]
        left = min(int(self.slots[depth][place]), wanted) // step * step
        if depth + 1 == len(self.tree.levels):
            return [(place, left)] if left else []
        depth += 1
        below = self.tree.levels[depth].below(place)
        keys = [self._key(key, [(depth, below)])[0] for key in self.how.filling]
        found: list[tuple[int, int]] = []
        for child in below[np.lexsort([below, *keys[::-1]])].tolist():
            if left <= 0:
                break
            part = self.filled(depth, child, left)
            left -= sum(count for _, count in part)
            found += part
        return found


Numbers = TypeVar("Numbers")


def _compared(key: GatherKey, existing: Numbers, slots: Numbers, scores: Numbers) -> tuple[Numbers, int]:
    """Which of these a key compares, and the sign by which the smaller comes first."""
    match key:
        case GatherKey.MOST_EXISTING | GatherKey.FEWEST_EXISTING:
            numbers = existing
        case GatherKey.LEAST_ROOM | GatherKey.MOST_ROOM:
            numbers = slots
        case _:
            numbers = scores
    return numbers, -1 if key in _MOST_FIRST else 1


def key_columns(keys: Iterable[GatherKey], existing: Column, slots: Column, scores: Column) -> list[Column]:
    """What places of one kind are compared by, one key after the other; the smaller comes first."""
    return [numbers * sign for numbers, sign in (_compared(key, existing, slots, scores) for key in keys)]


def assigned(pods: Iterable[Pod], leaves: Iterable[tuple[int, int]]) -> dict[Pod, int]:
    """The leaf of each pod: pods fill the leaves, each in its order."""
    places = (leaf for leaf, count in leaves for _ in range(count))
    return dict(zip(pods, places, strict=False))


def with_members(existing: Column, slots: Column, wanted: int) -> Column:
    """The existing pods of each leaf with those of a gang that were supposed there when its room was counted.

    Koordinator counts them so, by which more room looks like more pods that are there: all but the one that found no room any
    more, or the last.
    """
    return existing + np.minimum(slots, wanted - 1)


def nearness(tree: NetworkTree, leaves: Column, existing: Column, keys: Sequence[GatherKey]) -> Scores:
    """Scores of nodes that one pod may go to, 0 to 100, the first by the keys the best; each of them has room for the one pod.

    `leaves` says of each node, in the order of their names, where it is in the tree (`NOWHERE`: not at all), `existing` what
    each leaf of the tree has. No two nodes are equal: what decides last is the name. Nodes outside the tree come last.
    """
    inside = leaves != NOWHERE
    places = np.empty(len(leaves), np.int64)
    count = int(np.count_nonzero(inside))
    if count:
        candidates = leaves[inside]
        slots = np.zeros(tree.leaves, np.int64)
        slots[candidates] = 1
        nothing = tree.sums(np.zeros(tree.leaves, np.int64))
        view = _Ranked(
            tree, tree.sums(slots), tree.sums(existing), nothing, (), Gathering(candidates=tuple(keys))
        )
        order = np.empty(tree.leaves, np.int64)
        order[view.ordered(len(tree.levels) - 1, candidates)] = np.arange(count)
        places[inside] = order[candidates]
    places[~inside] = np.arange(count, len(leaves))
    return normalized("ReverseMaximum", places)
