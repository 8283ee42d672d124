"""Preemption as a post-filter: whether a pod may displace others, and whether it waits for some already."""

from collections.abc import Collection, Hashable, Mapping
from typing import Final

from koordpolicy.algorithms.eviction import Victims
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.prepared import Records
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.decision import NoCandidate, PostFilterResult
from koordpolicy.scheduler.plugins.base import FilterResults, FilterRun, PostFilterHost
from koordpolicy.scheduler.plugins.leaving import is_leaving
from koordpolicy.scheduler.plugins.preemption.policy import PreemptionPolicy
from koordpolicy.scheduler.plugins.preemption.search import Search

_LABELS_CHANGE: Final = frozenset({Event.POD_CHANGED})

NEVER: Final = NoCandidate({}, "not eligible due to preemptionPolicy=Never")
WAITING: Final = NoCandidate({}, "not eligible due to a terminating pod on the nominated node")


class PreemptionEvaluator:
    """The preemption of one profile over one cache."""

    def __init__(self, host: PostFilterHost) -> None:
        self._policy = PreemptionPolicy(host.graph, host.profile, host.cache.state.quotas)
        self._cache = host.cache
        self._promises = host.promises
        self._search = Search(host, self._policy)

    @property
    def helped_by(self) -> frozenset[Event]:
        """See `PostFilter.helped_by`: who may go is another one where a label says so."""
        return _LABELS_CHANGE if "labels" in self._policy.eligible_reads else frozenset()

    def may_free(self, records: Records, node: str, lacking: Mapping[str, int]) -> bool:
        """See `PostFilter.may_free`."""
        return self._search.may_free(records, node, lacking) and self._policy.wanted(records)

    def alike(self, records: Records) -> Hashable:
        """See `PostFilter.alike`."""
        return repr(self._policy.signature(records)), self._policy.wanted(records)

    def find(self, run: FilterRun, results: FilterResults) -> PostFilterResult | NoCandidate:
        """Who goes for a pod that no node took, or why nobody does. Raises CycleProblem."""
        if not self._policy.wanted(run.records):
            return NEVER
        if self._waits(run, results):
            return WAITING
        return self._search.find(run, results)

    def could(self, run: FilterRun, results: FilterResults) -> str | None:
        """The node on which room could be made for a pod, if any. Raises CycleProblem."""
        if not self._policy.wanted(run.records):
            return None
        found = self._search.find(run, results)
        return None if isinstance(found, NoCandidate) else found.node

    def beside(self, run: FilterRun, node: str, going: Collection[PodKey]) -> Victims[PodKey] | None:
        """Who goes from a node for a pod when some go in any case; None if all were in vain. Raises CycleProblem."""
        return self._search.beside(run, node, going)

    def _waits(self, run: FilterRun, results: FilterResults) -> bool:
        """Whether pods are still leaving the node that the pod waits for, so that there is hope yet."""
        node = self._promises.promised_to(run.view.pod.key)
        if node is None or node not in self._cache:
            return False
        row = self._cache.table.index(node)
        if any(one.verdicts is not None and bool(one.verdicts.unresolvable[row]) for one in results.filters):
            return False
        eligible = self._policy.eligible_for(run.records)
        return any(
            eligible(view) and is_leaving(view.pod, self._promises)
            for view in self._cache.pods_on(node).values()
        )
