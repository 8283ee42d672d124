"""How well a pod fits when each resource has a strategy of its own: scarce ones packed, plain ones spread.

Only what the pod requests counts. cpu and memory are counted with the non-zero totals of nodes, all else
with the plain ones, as in `fit_score`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Columns, Numbers, divide
from koordpolicy.algorithms.fit_score import (
    BEST,
    PARTS,
    NodeScore,
    Strategy,
    add_weighted,
    kind_of_sums,
    part_of_all,
)
from koordpolicy.algorithms.pod_request import STOCK_UNSTATED, effective_requests
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import CPU, MEMORY, PODS
from koordpolicy.model.reading import Amounts

STRATEGIES: Final = (Strategy.LEAST_ALLOCATED, Strategy.MOST_ALLOCATED)

_COUNTED_NONZERO: Final = (CPU, MEMORY)


@dataclass(frozen=True, slots=True)
class FitPlus:
    """Strategy and weight by resource. Strategies are those of `STRATEGIES`, weights from 0."""

    strategies: Mapping[str, Strategy]
    weights: Mapping[str, int]

    def score_all(
        self, pod: Pod, allocatable: Columns, requested: Columns, nonzero_requested: Columns, count: int
    ) -> Numbers:
        """The score of all `count` nodes, 0 to 100; 100 where nothing that is configured is requested."""
        counted = self._counted(pod)
        weights = sum(weight for _, weight, _ in counted)
        kind = kind_of_sums(weights)
        if not weights:
            return np.full(count, BEST, dtype=kind)
        total: Numbers | None = None
        for resource, weight, asked in counted:
            used = (nonzero_requested if resource in _COUNTED_NONZERO else requested)[resource]
            part, _ = part_of_all(self.strategies[resource], used, allocatable[resource], asked)
            total = add_weighted(total, part.astype(kind, copy=False), weight)
        assert total is not None
        divide(total, weights)
        return total

    def score_one(self, pod: Pod) -> NodeScore:
        """The score of one node after the other, for one pod."""
        counted = [
            (resource, weight, asked, resource in _COUNTED_NONZERO, PARTS[self.strategies[resource]])
            for resource, weight, asked in self._counted(pod)
        ]
        weights = sum(weight for _, weight, *_ in counted)
        if not weights:
            return lambda _allocatable, _requested, _nonzero_requested: BEST

        def score(allocatable: Amounts, requested: Amounts, nonzero_requested: Amounts) -> int:
            total = 0
            for resource, weight, asked, by_nonzero, part_of in counted:
                has = allocatable.get(resource, 0)
                if has:
                    used = (nonzero_requested if by_nonzero else requested).get(resource, 0)
                    total += part_of(used + asked, has) * weight
            return total // weights

        return score

    def _counted(self, pod: Pod) -> list[tuple[str, int, int]]:
        """Resource, weight and the pod's amount of what takes part for this pod."""
        asked, requests = fit_plus_requests(pod), effective_requests(pod)
        return [
            (resource, self.weights.get(resource, 0), asked.get(resource, 0))
            for resource in sorted(requests)
            if resource in self.strategies and requests[resource] > 0
        ]


def fit_plus_requests(pod: Pod) -> dict[str, int]:
    """The pod's request as this score counts it.

    Containers add up; then init containers in order of declaration: a sidecar adds, an ordinary one counts
    where it is larger than all so far. Containers that leave out cpu or memory count a little of it.
    Pod-level requests are left out; overhead comes on top.
    """
    total: dict[str, int] = {}
    for container in pod.containers:
        _add(total, _stated(container))
    for container in pod.init_containers:
        if container.sidecar:
            _add(total, _stated(container))
        else:
            for resource, value in _stated(container).items():
                total[resource] = max(total.get(resource, 0), value)
    _add(total, pod.overhead)
    total.pop(PODS, None)
    return total


def _stated(container: Container) -> Amounts:
    return {**STOCK_UNSTATED, **container.requests}


def _add(total: dict[str, int], more: Amounts) -> None:
    for resource, value in more.items():
        total[resource] = total.get(resource, 0) + value
