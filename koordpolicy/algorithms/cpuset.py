"""Picking CPUs for shared use, and the writes that bring a group of cgroups to the picked set."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from koordpolicy.model.topology import Processor


class Reach(StrEnum):
    """Which cgroups a set of CPUs is written to, and in which order."""

    TOP_DOWN = "top-down"
    """The group's own directory, then its pods, then their containers."""

    BOTTOM_UP = "bottom-up"
    """The reverse: children must shrink before their parents may."""

    TOP_DOWN_TO_PODS = "top-down to pods"
    """The group's own directory and its pods; containers keep theirs."""

    CONTAINERS_ONLY = "containers only"


@dataclass(frozen=True, slots=True)
class CpusetWrite:
    """One pass of writes of the same CPUs."""

    reach: Reach
    cpus: frozenset[int]


def pick_cpus(processors: Iterable[Processor], count: int) -> tuple[int, ...]:
    """`count` CPUs in the order they are picked; none at all when there are fewer.

    Spread over sockets and NUMA nodes, the fullest first; whole cores as long as two are needed,
    so that neighbours on one core share a fate; single CPUs in the end.
    """
    available = list(processors)
    if count <= 0 or len(available) < count:
        return ()
    buckets = _buckets(available)
    picked: list[int] = []
    turn = 0
    progress = False
    while count - len(picked) > 1:
        pair = _take_pair(buckets[turn])
        picked.extend(pair)
        progress = progress or bool(pair)
        turn = (turn + 1) % len(buckets)
        if turn == 0:
            if not progress:
                break
            progress = False
    while len(picked) < count:
        if buckets[turn]:
            picked.append(buckets[turn].pop(0).cpu)
        turn = (turn + 1) % len(buckets)
    return tuple(picked)


def transition(
    picked: Iterable[int], current: AbstractSet[int], allowed: AbstractSet[int], *, kubelet_owns_parents: bool
) -> tuple[CpusetWrite, ...]:
    """The writes from the current CPUs to the picked ones, in an order the kernel accepts.

    A parent must always hold what its children hold: first everything widens to old and new together,
    then shrinks from the containers up. Where the kubelet's static policy owns the parents, those go
    back to all `allowed` CPUs and only the containers get the picked ones. Nothing picked, nothing
    written, except that return.
    """
    chosen = frozenset(picked)
    if kubelet_owns_parents:
        parents = (CpusetWrite(Reach.TOP_DOWN_TO_PODS, frozenset(allowed)),) if allowed else ()
        return (*parents, CpusetWrite(Reach.CONTAINERS_ONLY, chosen)) if chosen else parents
    if not chosen:
        return ()
    return (CpusetWrite(Reach.TOP_DOWN, chosen | current), CpusetWrite(Reach.BOTTOM_UP, chosen))


def _buckets(processors: Sequence[Processor]) -> list[list[Processor]]:
    """Processors by place, the largest bucket first. The key is the reference's, collisions included."""
    by_place: dict[int, list[Processor]] = {}
    for processor in processors:
        place = (processor.node + len(processors)) * (processor.socket + 1)
        by_place.setdefault(place, []).append(processor)
    for bucket in by_place.values():
        bucket.sort(key=lambda one: (one.core, one.cpu))
    return sorted(by_place.values(), key=lambda bucket: (-len(bucket), bucket[0].cpu))


def _take_pair(bucket: list[Processor]) -> tuple[int, ...]:
    """Remove the first two neighbours on one core; empty when there are none."""
    for index in range(len(bucket) - 1):
        first, second = bucket[index : index + 2]
        if first.core == second.core:
            del bucket[index : index + 2]
            return (first.cpu, second.cpu)
    return ()
