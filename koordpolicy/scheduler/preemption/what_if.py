"""Who has to go from one node, found by asking all filters of the node as it would be."""

from collections import Counter
from collections.abc import Collection

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.eviction import Victims, reprieve
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.nodes import Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import PodKey
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation, FirstRefusals
from koordpolicy.scheduler.preemption.nominations import Nominations, passes
from koordpolicy.scheduler.preemption.policy import PreemptionPolicy
from koordpolicy.scheduler.preemption.pools import Pool


class WhatIf:
    """Asks of one node at a time, whether it passes now and still does once those who go are gone."""

    __slots__ = ("_cache", "_nominations", "_policy")

    def __init__(self, cache: ClusterCache, nominations: Nominations, policy: PreemptionPolicy) -> None:
        self._cache = cache
        self._nominations = nominations
        self._policy = policy

    def enough(self, cycle: Cycle, node: str, victims: tuple[PodView, ...]) -> bool:
        """Whether the node passes all filters once these are gone. Raises CycleProblem."""
        beside = self._nominations.respected(cycle, node)
        keys = [view.pod.key for view in victims]
        with self._cache.supposing(node, keys):
            if not self._fits(cycle, node):
                return False
        if not beside:
            return True
        with self._cache.supposing(node, keys, beside):
            return self._fits(cycle, node)

    def victims(
        self, cycle: Cycle, node: str, pool: Pool, broken: list[bool] | None
    ) -> Victims[PodKey] | None:
        """Who has to go; None where it is no use that anybody does. Raises CycleProblem."""
        keys = pool.keys
        beside = self._nominations.respected(cycle, node)
        if not keys:
            return None
        if beside:
            with self._cache.supposing(node, keys):
                if not self._fits(cycle, node):
                    return None
        with self._cache.supposing(node, keys, beside) as supposition:
            if not self._fits(cycle, node):
                return None

            def stays(key: PodKey) -> bool:
                supposition.put_back(key)
                if self._fits(cycle, node):
                    return True
                supposition.take_off(key)
                return False

            found = reprieve(keys, broken or [False] * len(keys), stays)
        return found if found.keys else None

    def beside(
        self, cycle: Cycle, node: str, pool: Pool, broken: list[bool] | None, going: Collection[PodKey]
    ) -> Victims[PodKey] | None:
        """Who has to go where some go in any case, whom the pool need not hold. Raises CycleProblem."""
        budgets = dict(zip(pool.keys, broken or [False] * len(pool.keys), strict=True))
        others = [key for key in pool.keys if key not in going]
        with self._cache.supposing(node, list(going)) as supposition:
            if self._fits(cycle, node):
                return Victims(tuple(going), sum(budgets.get(key, False) for key in going))
            for key in others:
                supposition.take_off(key)
            if not self._fits(cycle, node):
                return None

            def stays(key: PodKey) -> bool:
                supposition.put_back(key)
                if self._fits(cycle, node):
                    return True
                supposition.take_off(key)
                return False

            more = reprieve(others, [budgets[key] for key in others], stays)
        return Victims((*going, *more.keys), more.violations + sum(budgets.get(key, False) for key in going))

    def refusals(self, cycle: Cycle, node: str, pool: Pool) -> Counter[str]:
        """Why the node refuses the pod when all who may go are gone, once for each reason. Raises CycleProblem."""
        beside = self._nominations.respected(cycle, node)
        table = self._cache.table
        for there in (beside, ()) if beside else ((),):
            with self._cache.supposing(node, pool.keys, there):
                rows = np.array([table.index(node)])
                for moment in self._policy.moments(cycle):
                    found, _ = why_refused(moment.cycle, moment.evaluate(table, rows), rows, table)
                    if found:
                        return found
        return Counter()

    def _fits(self, cycle: Cycle, node: str) -> bool:
        table = self._cache.table
        rows = np.array([table.index(node)])
        return all(passes(moment.evaluate(table, rows)) for moment in self._policy.moments(cycle))


def why_refused(
    cycle: Cycle, evaluation: Evaluation, rows: Rows, table: NodeTable, filters: int | None = None
) -> tuple[Counter[str], Mask]:
    """How many nodes the first filter that refuses them refuses for which reason, and which ones none refuses.

    `evaluation` speaks of the nodes of these rows; only the first so many filters count.
    """
    found: Counter[str] = Counter()
    folded = FirstRefusals(evaluation, filters=filters)
    for first in folded:
        found.update(first.counts(cycle, table, rows))
    return found, folded.left
