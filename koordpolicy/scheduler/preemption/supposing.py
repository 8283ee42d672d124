"""Who has to go from one node, found by asking all filters of the node as it would be."""

from collections.abc import Collection

import numpy as np

from koordpolicy.mechanism.eviction import Victims, reprieve
from koordpolicy.scheduler.cache import ClusterCache
from koordpolicy.scheduler.cycle import Question, judge
from koordpolicy.scheduler.decision import PodKey
from koordpolicy.scheduler.pods import PodView
from koordpolicy.scheduler.preemption.nominations import Nominations, passes
from koordpolicy.scheduler.preemption.pools import Pool


class Supposing:
    """Asks of one node at a time."""

    __slots__ = ("_cache", "_nominations")

    def __init__(self, cache: ClusterCache, nominations: Nominations) -> None:
        self._cache = cache
        self._nominations = nominations

    def enough(self, question: Question, node: str, victims: tuple[PodView, ...]) -> bool:
        """Whether the node passes all filters once these are gone. Raises CycleProblem."""
        beside = self._nominations.respected(question, node)
        keys = [view.pod.key for view in victims]
        with self._cache.supposing(node, keys):
            if not self._fits(question, node):
                return False
        if not beside:
            return True
        with self._cache.supposing(node, keys, beside):
            return self._fits(question, node)

    def victims(
        self, question: Question, node: str, pool: Pool, broken: list[bool] | None
    ) -> Victims[PodKey] | None:
        """Who has to go; None where it is no use that anybody does. Raises CycleProblem."""
        keys = pool.keys
        beside = self._nominations.respected(question, node)
        if not keys:
            return None
        if beside:
            with self._cache.supposing(node, keys):
                if not self._fits(question, node):
                    return None
        with self._cache.supposing(node, keys, beside) as supposition:
            if not self._fits(question, node):
                return None

            def stays(key: PodKey) -> bool:
                supposition.put_back(key)
                if self._fits(question, node):
                    return True
                supposition.take_off(key)
                return False

            found = reprieve(keys, broken or [False] * len(keys), stays)
        return found if found.keys else None

    def beside(
        self, question: Question, node: str, pool: Pool, broken: list[bool] | None, going: Collection[PodKey]
    ) -> Victims[PodKey] | None:
        """Who has to go where some go in any case, whom the pool need not hold. Raises CycleProblem."""
        budgets = dict(zip(pool.keys, broken or [False] * len(pool.keys), strict=True))
        others = [key for key in pool.keys if key not in going]
        with self._cache.supposing(node, list(going)) as supposition:
            if self._fits(question, node):
                return Victims(tuple(going), sum(budgets.get(key, False) for key in going))
            for key in others:
                supposition.take_off(key)
            if not self._fits(question, node):
                return None

            def stays(key: PodKey) -> bool:
                supposition.put_back(key)
                if self._fits(question, node):
                    return True
                supposition.take_off(key)
                return False

            more = reprieve(others, [budgets[key] for key in others], stays)
        return Victims((*going, *more.keys), more.violations + sum(budgets.get(key, False) for key in going))

    def _fits(self, question: Question, node: str) -> bool:
        table = self._cache.table
        return passes(judge(question, table, np.array([table.index(node)])))
