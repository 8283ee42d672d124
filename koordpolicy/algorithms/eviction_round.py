"""One round of evictions on a node: each victim counts for all that is to be released.

Who may go, in which order, and what each would release is policy; here the lists are given.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Target(StrEnum):
    """What is released: what a pod requests, or what it uses."""

    REQUEST = "podResourceRequest"
    USED = "podUsed"


@dataclass(frozen=True, slots=True)
class EvictionTask(Generic[K]):
    """What is to be released for one reason, and the pods that may go for it, the first going first.

    `amounts` is what each pod would release of each resource.
    """

    reason: str
    target: Target
    release: Mapping[str, int]
    pods: Sequence[K]
    amounts: Mapping[K, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class EvictionRound(Generic[K]):
    """Who goes in this round and for which reason, who counted as going already, what that releases, which tasks are done."""

    evicted: Mapping[K, str]
    pending: Sequence[K]
    released: Mapping[Target, Mapping[str, int]]
    satisfied: Sequence[bool]


def eviction_round(
    tasks: Sequence[EvictionTask[K]],
    going: Collection[K],
    evict: Callable[[K, str], bool],
    most: int | None = None,
) -> EvictionRound[K]:
    """Work on the tasks in order until each is done or its pods are used up; those that ask for nothing count for nothing.

    `going` are pods that were evicted before and are still there: they count. `evict` says whether a pod really goes.
    At most `most` go in this round (None: as many as it takes).
    """
    evicted: dict[K, str] = {}
    pending: list[K] = []
    released: dict[Target, dict[str, int]] = {}
    open_ones = [task for task in tasks if not _done(task, {})]
    for task in open_ones:
        for pod in task.pods:
            if _done(task, released):
                break
            if pod in evicted or pod in pending:
                continue
            if pod in going:
                pending.append(pod)
            elif (most is None or len(evicted) < most) and evict(pod, task.reason):
                evicted[pod] = task.reason
            else:
                continue
            _count(open_ones, pod, released)
    return EvictionRound(evicted, pending, released, [_done(task, released) for task in tasks])


def _done(task: EvictionTask[K], released: Mapping[Target, Mapping[str, int]]) -> bool:
    so_far = released.get(task.target, {})
    return all(amount <= so_far.get(resource, 0) for resource, amount in task.release.items())


def _count(tasks: Sequence[EvictionTask[K]], pod: K, released: dict[Target, dict[str, int]]) -> None:
    """A pod releases of each resource the most that any task says, once for each target."""
    for target in {task.target for task in tasks}:
        so_far = released.setdefault(target, {})
        most: dict[str, int] = {}
        for resource, amount in _said(tasks, pod, target):
            most[resource] = max(most.get(resource, 0), amount)
        for resource, amount in most.items():
            so_far[resource] = so_far.get(resource, 0) + amount


def _said(tasks: Sequence[EvictionTask[K]], pod: K, target: Target) -> Iterator[tuple[str, int]]:
    for task in tasks:
        if task.target is target:
            yield from task.amounts.get(pod, {}).items()
