"""Pods that wait for others to leave a node, and how they count for those who look at it meanwhile."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.nodes import Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import prepared
from koordpolicy.cluster.trial_rows import Change, TrialRows
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation, Filtered, evaluate
from koordpolicy.scheduler.ledger import Ledger
from koordpolicy.scheduler.plugins import Verdicts
from koordpolicy.scheduler.pod_predicate import PodPredicate
from koordpolicy.scheduler.profile import KIND

_FARTHEST: Final = 86_400 * NANOSECONDS
"""How far ahead filters are asked at most."""


class Nominations:
    """How pods count that a node is promised to."""

    __slots__ = ("_ahead", "_cache", "_ledger", "_respects", "_trial_rows")

    def __init__(self, graph: RuleGraph, profile: str, cache: ClusterCache, ledger: Ledger) -> None:
        target = f"{graph.about(KIND, profile).target}.preemption"
        self._respects = PodPredicate(graph, f"{target}.respects", "nominated")
        self._ahead = prepared(graph, f"{target}.lookAhead")
        self._cache = cache
        self._ledger = ledger
        self._trial_rows = TrialRows(cache)

    def respected(self, cycle: Cycle, node: str) -> tuple[PodView, ...]:
        """The pods that count as being on a node for the one that is asked of."""
        waiting = self._ledger.promised_on(node)
        if not waiting:
            return ()
        me, respected = cycle.view.pod.key, self._respects.bound(cycle.records)
        return tuple(view for key, view in waiting.items() if key != me and respected(view))

    def signature(self, cycle: Cycle) -> tuple[Any, ...]:
        """Equal for pods for which the same others are respected; empty while nobody waits for a node."""
        return self._respects.signature(cycle.records) if self._ledger.promises else ()

    def look_ahead(self, cycle: Cycle) -> int:
        """After how many nanoseconds those who go will be gone; 0 where time alone does not change the cycle's answer."""
        if not cycle.profile.reads_time:
            return 0
        try:
            ahead = self._ahead.value(cycle.records)
        except CelError:
            return 0
        return min(ahead.ns, _FARTHEST) if isinstance(ahead, Duration) and ahead.ns > 0 else 0

    def counted(self, cycle: Cycle, evaluation: Evaluation) -> Evaluation:
        """The answers about all nodes, where a node must pass with those who wait for it, too.

        Filters that look beyond a node's row are not asked again here: `passes_beside` does that for one.
        """
        wanted: dict[str, Change] = {}
        for node in self._ledger.promises:
            if node in self._cache:
                beside = self.respected(cycle, node)
                if beside:
                    wanted[node] = Change(beside=beside)
        if not wanted:
            return evaluation
        tried = self._trial_rows
        for _ in tried.outdated():
            pass
        tried.keep(wanted)
        for name, change in wanted.items():
            tried.set(name, change)
        fresh = evaluate(cycle, tried.table, local_only=True)
        rows = np.array([self._cache.table.index(name) for name in tried.table.names], dtype=np.int64)
        return _both(evaluation, fresh, rows)

    def passes_beside(self, cycle: Cycle, node: str) -> bool:
        """Whether a node passes all filters with those who wait for it. Raises CycleProblem."""
        beside = self.respected(cycle, node)
        if not beside:
            return True
        cache = self._cache
        now = max(map(cache.since, cache.pods_on(node)), default=0)
        with cache.trial():
            for view in beside:
                cache.place(view, node, now)
            rows = np.array([cache.table.index(node)])
            return passes(evaluate(cycle, cache.table, rows, filters_only=True))


def passes(evaluation: Evaluation) -> bool:
    """Whether the one node that was evaluated passes all filters."""
    return evaluation.feasible() is None


def _both(evaluation: Evaluation, fresh: Evaluation, rows: Rows) -> Evaluation:
    """The answers about all nodes, refusals about some rows added."""
    both = zip(evaluation.filters, fresh.filters, strict=True)
    return replace(evaluation, filters=[_added(one, more, rows) for one, more in both])


def _added(one: Filtered, more: Filtered, rows: Rows) -> Filtered:
    """What a filter says of all nodes, its refusals about some rows added."""
    verdicts, accepted = one.verdicts, one.accepted
    if verdicts is not None and more.verdicts is not None and more.verdicts.refused.any():
        reasons = tuple(dict.fromkeys((*verdicts.reasons, *more.verdicts.reasons)))
        refused = np.zeros((len(reasons), verdicts.refused.shape[1]), np.bool_)
        refused[: len(verdicts.reasons)] = verdicts.refused
        for at, reason in enumerate(more.verdicts.reasons):
            refused[reasons.index(reason), rows] |= more.verdicts.refused[at]
        unresolvable = verdicts.unresolvable.copy()
        unresolvable[rows] |= more.verdicts.unresolvable
        verdicts = Verdicts(reasons, refused, unresolvable)
    if accepted is not None and more.accepted is not None:
        accepted = accepted.copy()
        accepted[rows] &= more.accepted
    return Filtered(one.step, verdicts, accepted, one.failed or more.failed)
