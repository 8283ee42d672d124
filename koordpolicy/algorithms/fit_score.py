"""How well a pod fits by what would be left: three strategies, for one node and for all at once.

cpu and memory are counted with the non-zero totals (a container that asks for nothing still counts
a little), everything else with the plain ones. A scalar resource that the pod does not request is
left out, and so is a resource the node does not have. Amounts below 2⁵⁶ keep all products in int64, and what a
node has beyond that is counted in Python's own numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import DIVIDES, Amount, Columns, Mask, Numbers, divide
from koordpolicy.model.protocol import CPU, MEMORY, is_scalar
from koordpolicy.model.reading import Amounts

BEST: Final = 100
"""The highest score."""

_PRODUCTS: Final = 2**56
"""Amounts below it stay within int64 when they are multiplied by the highest score."""

_COUNTED_NONZERO: Final = (CPU, MEMORY)

Weights = Sequence[tuple[str, int]]
"""Resources with their weights, in the order they are declared."""

Shape = Sequence[tuple[int, int]]
"""Points (utilization in percent, score 0 to 10), by ascending utilization."""


NodeScore = Callable[[Amounts, Amounts, Amounts], int]
"""The score of a node of what it has, what is requested there, and the same by non-zero totals."""


class Strategy(StrEnum):
    """What makes a node good."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


@dataclass(frozen=True, slots=True)
class FitScore:
    """A strategy with its weights. `curve` gives the score (0 to 100) at 0, 1, ... 100 % utilization."""

    strategy: Strategy
    weights: tuple[tuple[str, int], ...]
    curve: tuple[int, ...] = field(default=())

    @classmethod
    def of(cls, strategy: Strategy, weights: Weights, shape: Shape = ()) -> "FitScore":
        """A strategy ready for use. Raises ValueError when the ratio strategy's shape is no curve."""
        by_ratio = strategy is Strategy.REQUESTED_TO_CAPACITY_RATIO
        return cls(strategy, tuple(weights), utilization_curve(shape) if by_ratio else ())

    def score(
        self,
        request: Amounts,
        nonzero_request: Amounts,
        allocatable: Amounts,
        requested: Amounts,
        nonzero_requested: Amounts,
    ) -> int:
        """One node's score, 0 to 100. The requests of the pod are without its pod-level resources."""
        return self.score_one(request, nonzero_request)(allocatable, requested, nonzero_requested)

    def score_one(self, request: Amounts, nonzero_request: Amounts) -> "NodeScore":
        """`score` of one node after the other, for one pod."""
        counted = [
            (resource, weight, asked, resource in _COUNTED_NONZERO)
            for resource, weight, asked in self._counted(request, nonzero_request)
        ]
        curve = self.curve
        part_of = PARTS.get(self.strategy) or _by_curve(curve)

        def score(allocatable: Amounts, requested: Amounts, nonzero_requested: Amounts) -> int:
            total = weight_sum = 0
            for resource, weight, asked, by_nonzero in counted:
                has = allocatable.get(resource, 0)
                if has:
                    used = (nonzero_requested if by_nonzero else requested).get(resource, 0)
                    part = part_of(used + asked, has)
                    if part or not curve:
                        total += part * weight
                        weight_sum += weight
            if not weight_sum:
                return 0
            return _half_up(total, weight_sum) if curve else total // weight_sum

        return score

    def score_all(
        self,
        request: Amounts,
        nonzero_request: Amounts,
        allocatable: Columns,
        requested: Columns,
        nonzero_requested: Columns,
        count: int,
    ) -> Numbers:
        """`score` for all `count` nodes at once."""
        counted = self._counted(request, nonzero_request)
        kind = kind_of_sums(sum(weight for _, weight, _ in counted))
        total: Numbers | None = None
        # One number while every node has every resource, which is the rule; a column after that.
        weight_sum: Numbers | int = 0
        for resource, weight, asked in counted:
            has = allocatable[resource]
            if has.nowhere:
                continue
            used = (nonzero_requested if resource in _COUNTED_NONZERO else requested)[resource]
            part, counts = part_of_all(self.strategy, used, has, asked)
            if self.curve:
                part = np.asarray(self.curve, np.int64)[part.astype(np.int64, copy=False)]
                counts = part > 0 if counts is None else counts & (part > 0)
            if counts is None:
                weight_sum = weight_sum + weight
            else:
                part *= counts
                weight_sum = weight_sum + counts * weight
            total = add_weighted(total, part.astype(kind, copy=False), weight)
        if total is None:
            return np.zeros(count, kind)
        # Where nothing counted the total is 0, and so is the score.
        divisor = max(weight_sum, 1) if isinstance(weight_sum, int) else np.maximum(weight_sum, 1)
        if self.curve:
            total *= 2
            total += divisor
            divisor = divisor * 2
        divide(total, divisor)
        return total

    def _counted(self, request: Amounts, nonzero_request: Amounts) -> list[tuple[str, int, int]]:
        """Resource, weight and the pod's amount of what takes part for this pod."""
        counted = []
        for resource, weight in self.weights:
            asked = (nonzero_request if resource in _COUNTED_NONZERO else request).get(resource, 0)
            if asked != 0 or not is_scalar(resource):
                counted.append((resource, weight, asked))
        return counted


Part = Callable[[int, int], int]
"""One resource's score of what would be wanted and what there is, which is not 0."""


def _least_allocated(wanted: int, has: int) -> int:
    return 0 if wanted > has else (has - wanted) * BEST // has


def _most_allocated(wanted: int, has: int) -> int:
    return min(wanted, has) * BEST // has


def _by_curve(curve: Sequence[int]) -> Part:
    return lambda wanted, has: curve[BEST if wanted > has else wanted * BEST // has]


PARTS: Final[Mapping[Strategy, Part]] = MappingProxyType(
    {Strategy.LEAST_ALLOCATED: _least_allocated, Strategy.MOST_ALLOCATED: _most_allocated}
)
"""The strategies that need nothing else."""


def part_of_all(strategy: Strategy, used: Amount, has: Amount, asked: int) -> tuple[Numbers, Mask | None]:
    """One resource's score of each node, in an array of its own, and the nodes that have it; None for all.

    It is 0 on the others. For the strategy by a curve it is the percentage that would be used.
    """
    if used.high + asked >= _PRODUCTS or has.high >= _PRODUCTS:
        used, has, asked = _bounded(used, has, asked)
    divisors, counts = has.divisors
    above = used.high + asked > has.low
    if strategy is Strategy.LEAST_ALLOCATED:
        part = has.without(used)
        part -= asked
        if above:
            np.maximum(part, 0, out=part)
    else:
        part, most = used.increased(asked, has)
        if above:
            np.minimum(part, most, out=part)
    part *= BEST
    divide(part, divisors)
    return part if part.dtype.kind != "O" else part.astype(np.int64), counts


def _bounded(used: Amount, has: Amount, asked: int) -> tuple[Amount, Amount, int]:
    """The same question in numbers whose products do not leave int64: more than there is counts as just that."""
    most = max(int(has.high), 0) + 1
    if 2 * most < _PRODUCTS:
        return used.at_most(most), has, min(asked, most)
    return used.exactly(), has.exactly(), asked


def add_weighted(total: Numbers | None, part: Numbers, weight: int) -> Numbers:
    """The total so far and a part times its weight, in the array of one of them."""
    if weight != 1:
        part *= weight
    return part if total is None else np.add(total, part, out=total)


def kind_of_sums(weights: int) -> type[np.float64 | np.int64]:
    """In what numbers scores with these weights are added up and divided by them."""
    return np.float64 if 2 * (BEST + 1) * weights < DIVIDES else np.int64


def utilization_curve(shape: Shape) -> tuple[int, ...]:
    """The score (0 to 100) at each whole percent of utilization, linear between the points of a shape.

    Flat outside; between points the division truncates toward zero. Raises ValueError for a shape
    without points, with points out of range, or not ascending.
    """
    if not shape:
        raise ValueError("a shape needs at least one point")
    if any(not (0 <= use <= BEST and 0 <= score <= BEST // 10) for use, score in shape):
        raise ValueError("points of a shape have a utilization of 0 to 100 and a score of 0 to 10")
    if any(left[0] >= right[0] for left, right in pairwise(shape)):
        raise ValueError("the points of a shape must have ascending utilization")
    points = [(use, 10 * score) for use, score in shape]
    return tuple(_interpolated(points, use) for use in range(BEST + 1))


def _interpolated(points: list[tuple[int, int]], use: int) -> int:
    right = next((index for index, point in enumerate(points) if use <= point[0]), None)
    if right is None:
        return points[-1][1]
    if right == 0:
        return points[0][1]
    (low, start), (high, end) = points[right - 1], points[right]
    rise = (end - start) * (use - low)
    step = abs(rise) // (high - low)
    return start + (step if rise >= 0 else -step)


def _half_up(total: int, count: int) -> int:
    """total / count rounded, halves up; neither is negative."""
    return (2 * total + count) // (2 * count)
