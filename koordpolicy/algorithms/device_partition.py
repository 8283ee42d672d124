"""Partitions: sets of cards that are linked with each other, which pods get as a whole."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.algorithms.device_pick import Unpicked

NO_TABLE: Final = "node(s) missing GPU Partition Table"
NO_SUCH_SIZE: Final = "node(s) Unsupported number of GPU requests"
INSUFFICIENT: Final = "Insufficient Partitioned GPU Devices"


@dataclass(frozen=True, slots=True)
class Partition:
    """Some cards. `score` says how good they are together, `bandwidth` what their ring carries (None: nobody knows)."""

    minors: frozenset[int]
    score: int = 1
    bandwidth: int | None = None


Partitions = Mapping[int, Sequence[Partition]]
"""The partitions of a node by the number of their cards."""


def best_partitions(
    table: Partitions,
    size: int,
    used: Collection[int],
    healthy: Collection[int],
    weights: Mapping[int, int],
    *,
    first_group_only: bool = False,
    best_first: bool = False,
    bandwidth: int = 0,
) -> Sequence[tuple[int, ...]]:
    """The minors of the partitions that leave the most for others, one at least. Raises Unpicked.

    Partitions of one score are tried together, the least first (`best_first`: the greatest), the next only where none of these
    is free, unless `first_group_only`. What is left is counted in the first group of each size that is not smaller,
    by the weight of that size and the partitions' scores.
    """
    if not table:
        raise Unpicked(NO_TABLE, resolvable=False)
    if size not in table:
        raise Unpicked(NO_SUCH_SIZE, resolvable=False)
    taken, there = frozenset(used), frozenset(healthy)
    for group in _groups(table[size], best_first=best_first):
        free = [
            one
            for one in group
            if not one.minors & taken
            and one.minors <= there
            and (not bandwidth or (one.bandwidth is not None and one.bandwidth >= bandwidth))
        ]
        if free:
            left = [_left(table, size, taken | one.minors, weights, best_first=best_first) for one in free]
            most = max(left)
            return [tuple(sorted(one.minors)) for one, rest in zip(free, left, strict=True) if rest == most]
        if first_group_only:
            break
    raise Unpicked(INSUFFICIENT)


def _groups(partitions: Sequence[Partition], *, best_first: bool) -> Iterator[list[Partition]]:
    for score in sorted({one.score for one in partitions}, reverse=best_first):
        yield [one for one in partitions if one.score == score]


def _left(
    table: Partitions, size: int, taken: frozenset[int], weights: Mapping[int, int], *, best_first: bool
) -> int:
    """What is left for others once these cards are taken."""
    found = 0
    for other, weight in weights.items():
        if other >= size and table.get(other):
            group = next(_groups(table[other], best_first=best_first))
            found += sum(weight * one.score for one in group if not one.minors & taken)
    return found
