"""Who has to go from one node, found by asking all filters of the node as it would be."""

from collections import Counter
from collections.abc import Callable, Collection

import numpy as np

from koordpolicy.algorithms.eviction import Victims, reprieve
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.plugins.base import FilterRun
from koordpolicy.scheduler.plugins.preemption.pools import Pool


class WhatIf:
    """Asks of one node at a time, whether it passes now and still does once those who go are gone.

    `left` is how many more questions it has in the search that goes on; a node that has been begun with is asked about to
    the end.
    """

    __slots__ = ("_cache", "left")

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self.left = 0

    def enough(self, run: FilterRun, node: str, victims: tuple[PodView, ...]) -> bool:
        """Whether the node passes all filters once these are gone. Raises CycleProblem."""
        with self._cache.trial():
            return self._passes_without(run, node, [view.pod.key for view in victims])

    def victims(
        self, run: FilterRun, node: str, pool: Pool, broken: list[bool] | None
    ) -> Victims[PodKey] | None:
        """Who has to go; None where it is no use that anybody does. Raises CycleProblem."""
        keys = pool.keys
        if not keys:
            return None
        with self._cache.trial():
            put_back = self._put_back(node)
            if not self._passes_without(run, node, keys):
                return None
            found = reprieve(keys, broken or [False] * len(keys), self._stays(run, node, put_back))
        return found if found.keys else None

    def beside(
        self, run: FilterRun, node: str, pool: Pool, broken: list[bool] | None, going: Collection[PodKey]
    ) -> Victims[PodKey] | None:
        """Who has to go where some go in any case, whom the pool need not hold. Raises CycleProblem."""
        budgets = dict(zip(pool.keys, broken or [False] * len(pool.keys), strict=True))
        others = [key for key in pool.keys if key not in going]
        with self._cache.trial():
            put_back = self._put_back(node)
            self._cache.displace(*going)
            if self._fits(run, node):
                return Victims(tuple(going), sum(budgets.get(key, False) for key in going))
            self._cache.displace(*others)
            if not self._fits(run, node):
                return None
            stays = self._stays(run, node, put_back)
            more = reprieve(others, [budgets[key] for key in others], stays)
        return Victims((*going, *more.keys), more.violations + sum(budgets.get(key, False) for key in going))

    def refusals(self, run: FilterRun, node: str, pool: Pool) -> Counter[str]:
        """Why the node refuses the pod when all who may go are gone, once for each reason. Raises CycleProblem."""
        self.left -= 1
        beside = run.nominated(node)
        cache, table = self._cache, self._cache.table
        for there in (beside, ()) if beside else ((),):
            now = self._newest(node)
            with cache.trial():
                cache.displace(*pool.keys)
                for view in there:
                    cache.place(view, node, now)
                rows = np.array([table.index(node)])
                for moment in run.moments:
                    found, _ = moment.why_refused(moment.evaluate(table, rows), table, rows)
                    if found:
                        return found
        return Counter()

    def _passes_without(self, run: FilterRun, node: str, keys: Collection[PodKey]) -> bool:
        """Whether the node passes without these pods, and then beside those that it is promised to, too."""
        cache, now = self._cache, self._newest(node)
        cache.displace(*keys)
        if not self._fits(run, node):
            return False
        beside = run.nominated(node)
        for view in beside:
            cache.place(view, node, now)
        return not beside or self._fits(run, node)

    def _newest(self, node: str) -> int:
        """Since when the newest pod of a node is there."""
        return max(map(self._cache.since, self._cache.pods_on(node)), default=0)

    def _put_back(self, node: str) -> Callable[[PodKey], None]:
        """What puts pods back that are on the node now, as they are."""
        cache = self._cache
        there = {key: (view, cache.since(key)) for key, view in cache.pods_on(node).items()}

        def put_back(key: PodKey) -> None:
            view, since = there[key]
            cache.place(view, node, since)

        return put_back

    def _stays(
        self, run: FilterRun, node: str, put_back: Callable[[PodKey], None]
    ) -> Callable[[PodKey], bool]:
        """Whether a pod that is gone can stay after all, as it does then."""

        def stays(key: PodKey) -> bool:
            put_back(key)
            if self._fits(run, node):
                return True
            self._cache.displace(key)
            return False

        return stays

    def _fits(self, run: FilterRun, node: str) -> bool:
        self.left -= 1
        table = self._cache.table
        rows = np.array([table.index(node)])
        return all(moment.evaluate(table, rows).feasible() is None for moment in run.moments)
