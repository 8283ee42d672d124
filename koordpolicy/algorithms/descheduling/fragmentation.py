"""How unevenly the resources of a node are taken, and which pod's going makes that better."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Amounts = Mapping[str, int]


class Gain(NamedTuple):
    """A pod, by its place among the candidates, and by how much the imbalance falls without it."""

    candidate: int
    gain: float


@dataclass(frozen=True, slots=True)
class NodeRequests:
    """What a node has and what its pods ask for, over the resources that are weighed."""

    allocatable: Amounts
    requested: Amounts
    resources: Sequence[str]

    def imbalance(self, without: Amounts | None = None) -> float:
        """The population standard deviation of the requested fractions, perhaps without one pod.

        Resources of which the node has none are left out; 0 when that leaves none.
        """
        gone = without or {}
        fractions = [
            (self.requested.get(name, 0) - gone.get(name, 0)) / self.allocatable[name]
            for name in self.resources
            if self.allocatable.get(name, 0) > 0
        ]
        if not fractions:
            return 0.0
        mean = sum(fractions) / len(fractions)
        return math.sqrt(sum((one - mean) ** 2 for one in fractions) / len(fractions))

    def best(self, candidates: Iterable[Amounts], threshold: float, min_improvement: float) -> Gain | None:
        """The candidate, by its requests, whose going helps most; the first of equals.

        None when the imbalance is not above `threshold`, or no gain is above `min_improvement`.
        """
        before = self.imbalance()
        if before <= threshold:
            return None
        best: Gain | None = None
        for place, requests in enumerate(candidates):
            gain = before - self.imbalance(requests)
            if gain > min_improvement and (best is None or gain > best.gain):
                best = Gain(place, gain)
        return best
