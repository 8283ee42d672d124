"""One round of relief: which pods leave nodes that use too much, as long as others of the pool can take them.

LowNodeLoad of Koordinator. What policy and the cluster say meanwhile is asked of a `Reliever`. Amounts of nodes are columns, those of
pods are by resource name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.descheduling.node_score import usage_score
from koordpolicy.algorithms.descheduling.overuse import Amounts, LoadGroup, LoadThresholds
from koordpolicy.algorithms.descheduling.relief_score import relief_score
from koordpolicy.algorithms.work import Work

PODS: Final = "pods"
UNMEASURED: Final = -1.0
"""The score of a pod of which nothing was measured."""


class ReliefStop(StrEnum):
    """Why a round ended without any pod that goes."""

    NO_SOURCE = "no-source"
    NO_ANOMALY = "no-anomaly"
    NO_TARGET = "no-target"
    FEW_TARGETS = "number-of-nodes"
    ALL_LOW = "all-low"
    NOTHING_EVICTABLE = "nothing-evictable"


class Relieved(Protocol):
    """A pod that might go: what it uses, None where that was not measured, and whether it is a prod pod."""

    @property
    def usage(self) -> Mapping[str, int] | None:
        """By resource."""

    @property
    def prod(self) -> bool:
        """Whether prod thresholds are about it."""


P = TypeVar("P", bound=Relieved)


class Reliever(Protocol[P]):
    """What is to be known of pods while a round goes on. Nodes are meant by their rows."""

    def pods(self, row: int) -> Iterable[P]:
        """The pods of a node that have not ended."""

    def may_go(self, pod: P) -> bool:
        """Whether a pod may go, after those that go already."""

    def room(self, pod: P, targets: Sequence[int]) -> int | None:
        """The first of these nodes that has room for what the pod requests."""

    def ordered(self, pods: Sequence[tuple[P, float]]) -> Sequence[P]:
        """In which order they go; with each, how well its going would relieve its node."""

    def goes(self, pod: P, row: int, target: int | None, *, prod: bool) -> bool:
        """The pod is to go; whether it does. `target`: where it would find room, None where that was not asked."""

    def relieved(self, row: int, *, prod: bool) -> None:
        """The node uses no more than it may."""


@dataclass(frozen=True, slots=True)
class PoolTable:
    """A pool's nodes: what they have and use, when they are low and high, a row a node and a column a resource.

    `usage` and `prod_usage` follow the pods that go.
    """

    resources: tuple[str, ...]
    capacity: Amounts
    usage: Amounts
    prod_usage: Amounts
    thresholds: LoadThresholds
    prod_thresholds: LoadThresholds
    groups: NDArray[np.int64]

    def of(self, *groups: LoadGroup) -> list[int]:
        """The nodes of some groups, group by group, in their order."""
        return [int(row) for group in groups for row in np.flatnonzero(self.groups == group)]


@dataclass(frozen=True, slots=True)
class ReliefRules:
    """`least_targets`: pods move only where more nodes than so many take some. `weights`: of resources, by node."""

    least_targets: int
    fits_load: bool
    weights: Callable[[int], Mapping[str, int]]


@dataclass(slots=True)
class ReliefRound(Generic[P]):
    """A round over one pool. `budget` is what targets take in its first part, once that has begun."""

    table: PoolTable
    rules: ReliefRules
    reliever: Reliever[P]
    budget: Mapping[str, int] | None = None
    moved: int = field(default=0, init=False)

    def run(self, sources: Sequence[int], prod_sources: Sequence[int]) -> Work[ReliefStop | None]:
        """Let pods go from `sources`, and prod pods from `prod_sources`, those that are too full for long enough.

        Gives why none did.
        """
        table = self.table
        low, prod_low = table.of(LoadGroup.LOW), table.of(LoadGroup.PROD_LOW)
        both = table.of(LoadGroup.BOTH_LOW)
        count = len(low) + len(prod_low) + len(both)
        if not count:
            return ReliefStop.NO_TARGET
        if count <= self.rules.least_targets:
            return ReliefStop.FEW_TARGETS
        if count == len(table.groups):
            return ReliefStop.ALL_LOW
        left_low, left_prod_low = self._left(low, prod=False), self._left(prod_low, prod=True)
        left_both, left_both_prod = self._left(both, prod=False), self._left(both, prod=True)
        budget = left_low + left_both
        self.budget = dict(zip(table.resources, budget.tolist(), strict=True))
        yield from self._relieve(self._fullest_first(sources, table.usage), [*low, *both], budget, prod=False)
        budget = left_prod_low + np.minimum(left_both_prod, np.minimum(left_both, budget))
        fullest = self._fullest_first(prod_sources, table.prod_usage)
        yield from self._relieve(fullest, [*prod_low, *both], budget, prod=True)
        return None if self.moved else ReliefStop.NOTHING_EVICTABLE

    def _left(self, rows: Sequence[int], *, prod: bool) -> Amounts:
        """What nodes can take together before they are high."""
        used, thresholds = self._side(prod=prod)
        total: Amounts = (thresholds.high[rows] - used[rows]).sum(axis=0)
        return total

    def _side(self, *, prod: bool) -> tuple[Amounts, LoadThresholds]:
        table = self.table
        return (table.prod_usage, table.prod_thresholds) if prod else (table.usage, table.thresholds)

    def _fullest_first(self, rows: Sequence[int], used: Amounts) -> list[int]:
        table = self.table

        def score(row: int) -> int:
            return usage_score(
                dict(zip(table.resources, used[row].tolist(), strict=True)),
                dict(zip(table.resources, table.capacity[row].tolist(), strict=True)),
                self.rules.weights(row),
            )

        return sorted(rows, key=score, reverse=True)

    def _relieve(
        self, sources: Sequence[int], targets: Sequence[int], budget: Amounts, *, prod: bool
    ) -> Work[None]:
        if not targets:
            return
        at = np.array(targets)
        for row in sources:
            yield
            self._relieve_one(row, at, budget, prod=prod)

    def _relieve_one(self, row: int, targets: NDArray[np.int64], budget: Amounts, *, prod: bool) -> None:
        used, thresholds = self._side(prod=prod)
        found = list(self._removable(row, targets, prod=prod))
        excess = dict(zip(self.table.resources, (used[row] - thresholds.high[row]).tolist(), strict=True))
        weights = self.rules.weights(row)
        scored = [
            (pod, UNMEASURED if pod.usage is None else relief_score(pod.usage, excess, weights))
            for pod, _ in found
        ]
        where = {id(pod): target for pod, target in found}
        for pod in self.reliever.ordered(scored):
            if not (used[row] > thresholds.high[row]).any():
                self.reliever.relieved(row, prod=prod)
                return
            if not (budget > 0).all():
                return
            if not self.reliever.may_go(pod):
                continue
            if self.reliever.goes(pod, row, where[id(pod)], prod=prod):
                self.moved += 1
                self._gone(pod, row, budget, prod=prod)

    def _removable(
        self, row: int, targets: NDArray[np.int64], *, prod: bool
    ) -> Iterable[tuple[P, int | None]]:
        """The pods of a node that may go, each with where it finds room: that counts as taken, whether it goes or not."""
        used, thresholds = self._side(prod=prod)
        for pod in self.reliever.pods(row):
            if (prod and not pod.prod) or not self.reliever.may_go(pod):
                continue
            if not self.rules.fits_load:
                yield pod, None
                continue
            if pod.usage is None:
                continue
            uses = self._amounts(pod.usage)
            takes = (used[targets] + uses <= thresholds.high[targets]).all(axis=1)
            target = self.reliever.room(pod, targets[takes].tolist())
            if target is not None:
                used[target] += uses
                yield pod, target

    def _gone(self, pod: P, row: int, budget: Amounts, *, prod: bool) -> None:
        if pod.usage is None:
            return
        uses = self._amounts(pod.usage)
        if PODS in self.table.resources:
            uses[self.table.resources.index(PODS)] = 1
        budget -= uses
        self.table.usage[row] -= uses
        if prod:
            self.table.prod_usage[row] -= uses

    def _amounts(self, usage: Mapping[str, int]) -> Amounts:
        return np.array([usage.get(name, 0) for name in self.table.resources], np.int64)
