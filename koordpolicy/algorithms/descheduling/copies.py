"""Copies of one pod that crowd on some nodes, as RemoveDuplicates of Kubernetes' descheduler finds them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import ceil
from typing import TypeVar

Pod = TypeVar("Pod")

CopyKey = tuple[Hashable, ...]
"""What copies have in common; `()` for a pod that has none."""


def crowded_copies(
    nodes: Sequence[Sequence[Pod]],
    key_of: Callable[[Pod], CopyKey],
    may_be_on: Callable[[Pod], frozenset[int]],
) -> list[tuple[int, Pod]]:
    """The pods that are too many, each with the position of its node.

    `nodes` are the pods of each node that may go, `may_be_on` says on which of them a pod may run at all. Of copies each of the nodes
    where they may run keeps its even part, rounded up; where that is one node at most, all stay.
    """
    number: dict[CopyKey, int] = defaultdict(int)
    further: dict[CopyKey, dict[int, list[Pod]]] = defaultdict(lambda: defaultdict(list))
    for at, pods in enumerate(nodes):
        seen: set[CopyKey] = set()
        for pod in pods:
            key = key_of(pod)
            if not key:
                continue
            number[key] += 1
            if key in seen:
                further[key][at].append(pod)
            seen.add(key)
    return [
        (at, pod)
        for key, by_node in further.items()
        if (part := _part(number[key], by_node.values(), may_be_on))
        for at, pods in by_node.items()
        for pod in pods[part - 1 :]
    ]


def _part(number: int, copies: Iterable[Sequence[Pod]], may_be_on: Callable[[Pod], frozenset[int]]) -> int:
    """How many copies a node keeps; 0 where they have nowhere else to go."""
    places: set[int] = set()
    for pods in copies:
        for pod in pods:
            own = may_be_on(pod)
            if len(own) > 1:
                places |= own
    return ceil(number / len(places)) if len(places) > 1 else 0
