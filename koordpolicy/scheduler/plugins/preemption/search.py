"""The search for the node where the fewest and least important pods have to go.

Which nodes are worth a look follows from what refused them. Where only room is short, who would have to go
is arithmetic; where another filter refuses a node too, the filters are asked of the node as it would be. The
node that policy then prefers is asked of in any case, before anybody goes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.eviction import Victims, candidates_to_find
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records
from koordpolicy.cluster.trial_rows import Change, TrialRows
from koordpolicy.graph.sortable import SortKey
from koordpolicy.model.pod import PodKey
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.decision import NoCandidate, PostFilterResult, Victim
from koordpolicy.scheduler.plugins.base import FilterResults, FilterRun, FilterStep, PostFilterHost
from koordpolicy.scheduler.plugins.preemption.futile import Futile, FutileSearches
from koordpolicy.scheduler.plugins.preemption.no_candidate import in_vain
from koordpolicy.scheduler.plugins.preemption.policy import PreemptionPolicy, candidate_facts
from koordpolicy.scheduler.plugins.preemption.pools import Pools
from koordpolicy.scheduler.plugins.preemption.what_if import WhatIf

_TABLES: Final = 4
"""Tables of nodes without victims that are kept at once, one for each set of pods that may go."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A node with those who would have to go. `exact` says that all filters were asked."""

    node: str
    victims: tuple[PodView, ...]
    violations: int
    key: SortKey
    exact: bool


class Search:
    """Looks for victims among the pods of a cache."""

    __slots__ = ("_bare", "_cache", "_draw", "_futile", "_policy", "_pools", "_promised_on", "_what_if")

    def __init__(self, host: PostFilterHost, policy: PreemptionPolicy) -> None:
        cache = self._cache = host.cache
        self._policy = policy
        self._promised_on = host.promises.promised_on
        self._draw = host.draw
        self._futile = FutileSearches(cache, policy, host.promises)
        self._pools = Pools(cache, policy)
        self._what_if = WhatIf(cache)
        self._bare: dict[tuple[object, ...], TrialRows] = {}

    def find(self, run: FilterRun, results: FilterResults) -> PostFilterResult | NoCandidate:
        """Who goes for a pod that no node took; or why nobody does. Raises CycleProblem."""
        look = self._look(run, results)
        key = self._futile.key(run, look.shown)
        known = self._futile.get(key)
        if known is not None:
            if known.drawn:
                self._draw(known.drawn)  # as a search would: what is remembered changes no decision after it
            return known.said
        best = self._best(run, look)
        if best is None:
            said = in_vain(
                run, results, self._cache, self._pools.of(run.records), self._what_if,
                lambda names: self._without_all(run, names),
            )  # fmt: skip
            self._futile.note(key, Futile(said, len(look.possible) if look.possible.any() else 0))
            return said
        return PostFilterResult(
            best.node,
            tuple(Victim(view.pod.key, view.pod.uid, view.pod.terminating) for view in best.victims),
            best.violations,
            tuple(
                key
                for key, view in self._promised_on(best.node).items()
                if key != run.view.pod.key and view.priority < run.view.priority
            ),
        )

    def _look(self, run: FilterRun, results: FilterResults) -> "_Look":
        """What the refusals say, found once for pods that are alike; not in a trial, whose rows are nobody else's."""
        table = self._cache.table
        made = {} if self._cache.trying else results.made(table.version)
        moments = run.moments
        asked = (_Look, *[later.records["now"] for later in moments[1:]])
        look: _Look | None = made.get(asked)
        if look is None:
            look = _Look.at(results)
            for later in moments[1:]:
                look = look.also(later, table)
            made[asked] = look
        return look

    def beside(self, run: FilterRun, node: str, going: Collection[PodKey]) -> Victims[PodKey] | None:
        """Who goes from a node when some go in any case: these, and whom else it takes; None if all were in vain.

        Raises CycleProblem.
        """
        pools = self._pools.of(run.records)
        return self._what_if.beside(run, node, pools.on(node), pools.broken(pools.on(node)), going)

    def may_free(self, records: Records, node: str, lacking: Mapping[str, int]) -> bool:
        """Whether those who may go from a node take as much together as a pod lacks there."""
        pool = self._pools.at(records, node)
        return bool(pool.views) and all(
            pool.total(resource) >= amount for resource, amount in lacking.items()
        )

    def _best(self, run: FilterRun, look: "_Look") -> _Candidate | None:
        """The node that policy prefers; None when no node can be helped."""
        rows = np.flatnonzero(look.possible)
        share, least, self._what_if.left = self._policy.search(run.records)
        if not len(rows):
            return None
        wanted = candidates_to_find(len(rows), share, least)
        start = int(np.searchsorted(rows, self._draw(len(look.possible))))
        table = self._cache.table
        names = table.named(np.concatenate((rows[start:], rows[:start])))
        stream = self._candidates(run, look, names, wanted)
        found: list[_Candidate] = []
        while more := list(islice(stream, wanted)):
            found += more
            if all(one.violations for one in found):
                continue  # all of them break budgets: look further
            best = self._verified(run, look, found)
            if best is not None:
                return best
            found = []  # none of them was one after all
        return self._verified(run, look, found)

    def _verified(self, run: FilterRun, look: "_Look", found: Sequence[_Candidate]) -> _Candidate | None:
        """The best of some candidates. Those whose victims turn out to be others are evaluation by these."""
        left = {one.node: one for one in found}
        while left:
            best = min(left.values(), key=lambda one: one.key)
            # Who has to go for room has to go in any case, so that nobody else needs to if that is enough.
            if best.exact or (not look.far and self._what_if.enough(run, best.node, best.victims)):
                return best
            exact = self._exact(run, best.node) if self._what_if.left > 0 else None
            if exact is None:
                del left[best.node]
            else:
                left[best.node] = exact
        return None

    def _candidates(
        self, run: FilterRun, look: "_Look", names: Sequence[str], many: int
    ) -> Iterator[_Candidate]:
        """The candidates among some nodes, in their order as far as they are of one sort; so many at once."""
        alone = look.room is None
        closer = self._worth_asking(run, look) if alone or look.other.any() else {}
        pools = self._pools.of(run.records)
        amounts = {} if alone else look.wanted(run)
        for begin in range(0, len(names), many):
            some = names[begin : begin + many]
            if not alone:
                simple = [name for name in some if name not in closer]
                beside = {name: run.nominated(name) for name in simple}
                for short in pools.short(simple, amounts, beside):
                    yield self._candidate(run, short.node, short.victims, short.violations, exact=False)
            for name in some:
                if closer.get(name) and self._what_if.left > 0:
                    found = self._exact(run, name)
                    if found is not None:
                        yield found

    def _exact(self, run: FilterRun, node: str) -> _Candidate | None:
        """A candidate by all filters; None where the node is none."""
        pools = self._pools.of(run.records)
        pool = pools.on(node)
        found = self._what_if.victims(run, node, pool, pools.broken(pool))
        if found is None:
            return None
        going = frozenset(found.keys)
        victims = tuple(view for view in pool.views if view.pod.key in going)
        return self._candidate(run, node, victims, found.violations, exact=True)

    def _candidate(
        self, run: FilterRun, node: str, victims: tuple[PodView, ...], violations: int, *, exact: bool
    ) -> _Candidate:
        facts = candidate_facts(
            node, victims, violations, run.records["now"], pods=self._policy.reads_victims
        )
        return _Candidate(node, victims, violations, self._policy.order(run.records, facts), exact)

    def _worth_asking(self, run: FilterRun, look: "_Look") -> dict[str, bool]:
        """The nodes that something else than room refuses; whether they would pass without all who may go."""
        rows = np.flatnonzero(look.possible if look.room is None else look.other)
        names = self._cache.table.named(rows)
        table = self._without_all(run, names)
        fits = np.ones(len(table), np.bool_)
        asked = np.array([table.index(name) for name in names], dtype=np.int64)
        for moment in run.moments:
            if not fits[asked].any():
                break  # as for most pods that find no node: what comes later makes none of them pass
            feasible = moment.evaluate(table, local_only=True).feasible()
            if feasible is not None:
                fits &= feasible
        return dict(zip(names, fits[asked].tolist(), strict=True))

    def _without_all(self, run: FilterRun, names: Sequence[str]) -> NodeTable:
        """A table with these nodes, and maybe others, as they are without all who may go for the pod."""
        tried, pools = self._trial_rows(run), self._pools.of(run.records)
        for name in tried.outdated():
            tried.set(name, None)
        left = tried.unsettled(names)
        for name in left:
            # A pod whose news leave the row as it is may be another to those who ask who may go.
            known, going = tried.change(name), pools.on(name).keys
            if known is None or known.without is not going:
                tried.set(name, Change(going))
        tried.settle(left)
        return tried.table

    def _trial_rows(self, run: FilterRun) -> TrialRows:
        """Nodes without those who may go for this pod."""
        signature = self._policy.signature(run.records)
        known = self._bare.pop(signature, None)
        if known is None:
            known = TrialRows(self._cache)
            while len(self._bare) >= _TABLES:
                del self._bare[next(iter(self._bare))]
        self._bare[signature] = known
        return known


@dataclass(frozen=True)
class _Look:
    """What the refusals of a pod say: on which nodes fewer pods might help at all, and on which of these
    something else than room is short. `room` is the filter that counts room; `far` says that a filter that
    looks beyond nodes has something to say.
    """

    possible: Mask
    other: Mask
    room: FilterStep | None
    far: bool

    @classmethod
    def at(cls, results: FilterResults) -> "_Look":
        unresolvable, other = np.zeros((2, results.nodes), np.bool_)
        room: FilterStep | None = None
        far = False
        for one in results.filters:
            step, verdicts, accepted = one.step, one.verdicts, one.accepted
            if verdicts is not None and step.plugin is not None:
                unresolvable |= verdicts.unresolvable
                far |= step.looks_beyond
                if room is None and step.plugin.requests is not None:
                    room = step
                else:
                    other |= verdicts.refused.any(axis=0)
            if accepted is not None and step.depends_on_pods:
                other |= ~accepted
            elif accepted is not None:
                unresolvable |= ~accepted
        return cls(~unresolvable, other & ~unresolvable, room, far)

    def also(self, later: FilterRun, table: NodeTable) -> "_Look":
        """The same, in view of what the nodes' own rows will say later, when nothing but the time is another."""
        rows = np.flatnonzero(self.possible)
        if not len(rows):
            return self
        then = _Look.at(later.evaluate(table, rows, local_only=True))
        possible, other = self.possible.copy(), self.other.copy()
        possible[rows] = then.possible
        other[rows] |= then.other
        return replace(self, possible=possible, other=other & possible)

    @cached_property
    def shown(self) -> bytes:
        """The nodes on which fewer pods might help, as something to look up by."""
        return self.possible.tobytes()

    def wanted(self, run: FilterRun) -> Mapping[str, int]:
        """The amounts that the pod needs to be free."""
        assert self.room is not None
        assert self.room.plugin is not None
        assert self.room.plugin.requests is not None
        return self.room.plugin.requests(run.view, self.room.values(run.records))
