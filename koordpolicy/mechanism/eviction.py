"""Who has to go for a pod of higher priority: as few as possible, the least important first.

The order of importance, and who may go at all, is policy; here the victims of one node are given.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

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


class Room:
    """Room on a node by arithmetic alone: what is free without the victims, less those who stay.

    `free` has the amounts that are free of each resource the pod wants, pods as such among them.
    """

    __slots__ = ("_free", "_wanted")

    def __init__(self, wanted: Mapping[str, int], free: Mapping[str, int]) -> None:
        self._wanted = tuple(wanted.items())
        self._free = dict(free)

    @property
    def fits(self) -> bool:
        """Whether the pod fits now."""
        return all(self._free[resource] >= amount for resource, amount in self._wanted)

    def stays(self, amounts: Mapping[str, int]) -> bool:
        """Whether the pod fits beside one who takes these amounts; who then does."""
        taken = [(resource, amounts.get(resource, 0)) for resource, _ in self._wanted]
        for resource, amount in taken:
            self._free[resource] -= amount
        if self.fits:
            return True
        for resource, amount in taken:
            self._free[resource] += amount
        return False
