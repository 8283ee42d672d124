"""Who has to go for a pod of higher priority: as few as possible, the least important first.

The order of importance, and who may go at all, is policy; here the victims of one node are given.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.model.disruption import Budget
from koordpolicy.model.pod import Pod

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Victims(Generic[K]):
    """Those who go, the most important first.

    `violations` is how many of them a disruption budget would have kept.
    """

    keys: tuple[K, ...]
    violations: int


def candidates_to_find(nodes: int, percentage: float, least: int) -> int:
    """How many nodes worth preempting on end the search among so many."""
    return min(nodes, max(int(nodes * percentage // 100), least))


def violating(pods: Sequence[Pod], budgets: Iterable[Budget]) -> list[bool]:
    """For pods in order of importance, whether evicting all up to it breaks a budget of its own.

    Each pod uses up one disruption of every budget that is over it. One that a budget counts as disrupted
    already costs it nothing, and pods without labels are under no budget.
    """
    left = {budget: budget.allowed for budget in budgets}
    found = []
    for pod in pods:
        breaks = False
        for budget, allowed in left.items():
            if budget.covers(pod):
                left[budget] = allowed - 1
                breaks |= allowed - 1 < 0
        found.append(breaks)
    return found


def reprieve(keys: Sequence[K], breaks: Sequence[bool], stays: Callable[[K], bool]) -> Victims[K]:
    """Let those stay who can, the most important first, those under used-up budgets before all others.

    All are off the node at first. `stays` puts one back, says whether the pod fits beside it, and takes it
    off again where it does not.
    """
    order = sorted(range(len(keys)), key=lambda at: not breaks[at])
    gone = sorted(at for at in order if not stays(keys[at]))
    return Victims(tuple(keys[at] for at in gone), sum(breaks[at] for at in gone))


@dataclass(frozen=True, slots=True)
class Crowds:
    """Those who may go from many nodes, the most important first; one row a node, filled up at its end.

    `amounts` is what each takes of each resource (nodes x pods x resources), `present` says which places are
    filled, `breaks` whose going breaks a budget.
    """

    amounts: NDArray[np.int64]
    present: Mask
    breaks: Mask


def reprieve_all(wanted: NDArray[np.int64], free: NDArray[np.int64], crowds: Crowds) -> tuple[Mask, Mask]:
    """`reprieve` on many nodes at once, where the pod fits as soon as the amounts it wants are free.

    `free` is what is free of each resource on each node without all who may go. Gives who has to go, and the
    nodes on which that is enough.
    """
    enough: Mask = np.asarray((free >= wanted).all(axis=1), dtype=np.bool_)
    order = np.argsort(~crowds.breaks, axis=1, kind="stable")
    amounts = np.take_along_axis(crowds.amounts, order[:, :, None], axis=1)
    present = np.take_along_axis(crowds.present, order, axis=1)
    gone = np.zeros_like(present)
    for place in range(present.shape[1]):
        left = free - amounts[:, place]
        stays = (left >= wanted).all(axis=1) & present[:, place]
        free = np.where(stays[:, None], left, free)
        gone[:, place] = present[:, place] & ~stays
    victims = np.zeros_like(gone)
    np.put_along_axis(victims, order, gone, axis=1)
    return victims, enough
