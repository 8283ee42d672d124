"""The search for the node where the fewest and least important pods have to go.

Which nodes are worth a look follows from what refused them. Where only room is short, who would have to go
is arithmetic; where another filter refuses a node too, the filters are asked of the node as it would be. The
node that policy then prefers is asked of in any case, before anybody goes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from koordpolicy.language.cel.values import Timestamp
from koordpolicy.mechanism.columns import Mask
from koordpolicy.mechanism.eviction import Room, Victims, candidates_to_find, reprieve, violating
from koordpolicy.model.disruption import Budget
from koordpolicy.scheduler.cache import ClusterCache
from koordpolicy.scheduler.cycle import Judged, Question, judge
from koordpolicy.scheduler.decision import PodKey, Preemption, Victim
from koordpolicy.scheduler.preemption.hypothesis import Change, SupposedNodes
from koordpolicy.scheduler.preemption.nominations import Nominations, passes
from koordpolicy.scheduler.preemption.policy import PreemptionPolicy, candidate_facts
from koordpolicy.scheduler.profile import Step
from koordpolicy.scheduler.sortkeys import SortKey

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"

_TABLES: Final = 4
"""Tables of nodes without victims that are kept at once, one for each set of pods that may go."""


@dataclass(frozen=True, slots=True)
class Without:
    """Why nobody goes: how many nodes for which reason; or one text where no node was looked at."""

    counts: Mapping[str, int]
    ineligible: str = ""

    def message(self, nodes: int) -> str:
        """As Kubernetes' scheduler says it, after the reasons of the filters."""
        if self.ineligible:
            return f"preemption: {self.ineligible}"
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(self.counts.items()) if count)
        return f"preemption: 0/{nodes} nodes are available: {listed}" if listed else ""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A node with those who would have to go. `exact` says that all filters were asked."""

    node: str
    victims: Victims[PodKey]
    key: SortKey
    exact: bool


class Search:
    """Looks for victims in the pods of a cache."""

    __slots__ = ("_bare", "_budgets", "_cache", "_draw", "_nominations", "_policy")

    def __init__(
        self,
        cache: ClusterCache,
        policy: PreemptionPolicy,
        nominations: Nominations,
        budgets: Mapping[tuple[str, str], Budget],
        draw: Callable[[int], int],
    ) -> None:
        self._cache = cache
        self._policy = policy
        self._nominations = nominations
        self._budgets = budgets
        self._draw = draw
        self._bare: dict[tuple[object, ...], SupposedNodes] = {}

    def find(self, question: Question, judged: Judged) -> Preemption | Without:
        """Who goes for a pod that no node took; or why nobody does. Raises CycleProblem."""
        found = _Found(self, question, judged)
        best = found.best()
        if best is None:
            return Without(found.counts())
        pods = self._cache.pods_on(best.node)
        return Preemption(
            best.node,
            tuple(Victim(key, pods[key].pod.uid) for key in best.victims.keys),
            best.victims.violations,
            tuple(
                key
                for key, view in self._nominations.on(best.node).items()
                if key != question.view.pod.key and view.priority < question.view.priority
            ),
        )

    # --- pieces of the search ---------------------------------------------------------------------

    def eligible(self, question: Question, node: str) -> tuple[PodKey, ...]:
        """The pods on a node that may go, the most important first."""
        now: Timestamp = question.records["now"]
        policy, records = self._policy, question.records
        able = [
            (policy.importance(view, now), key)
            for key, view in self._cache.pods_on(node).items()
            if policy.eligible(records, view)
        ]
        able.sort(key=lambda one: one[0])
        return tuple(key for _, key in able)

    def bare(self, question: Question) -> SupposedNodes:
        """All nodes without those who may go for this pod, those that others wait for counted."""
        signature = self._policy.signature(question.records)
        known = self._bare.pop(signature, None)
        if known is None:
            known = SupposedNodes(self._cache)
            while len(self._bare) >= _TABLES:
                del self._bare[next(iter(self._bare))]
        self._bare[signature] = known
        return known

    def breaks(self, node: str, eligible: Sequence[PodKey]) -> list[bool]:
        """Whose going would break a disruption budget."""
        if not self._budgets:
            return [False] * len(eligible)
        pods = self._cache.pods_on(node)
        return violating([pods[key].pod for key in eligible], self._budgets.values())

    def exact(self, question: Question, node: str) -> Victims[PodKey] | None:
        """Who has to go from a node, all filters asked; None where it is no use."""
        eligible = self.eligible(question, node)
        breaks = self.breaks(node, eligible)
        beside = self._nominations.respected(question, node)
        row = np.array([self._cache.table.index(node)])

        def fits() -> bool:
            return passes(judge(question, self._cache.table, row))

        if beside:
            with self._cache.supposing(node, eligible):
                if not fits():
                    return None
        with self._cache.supposing(node, eligible, beside) as supposition:
            if not eligible or not fits():
                return None

            def stays(key: PodKey) -> bool:
                supposition.put_back(key)
                if fits():
                    return True
                supposition.take_off(key)
                return False

            found = reprieve(eligible, breaks, stays)
        return found if found.keys else None

    def by_room(self, question: Question, step: Step, node: str) -> Victims[PodKey] | None:
        """Who has to go from a node where nothing but room is short; None where that is no use."""
        assert step.mechanism is not None
        assert step.mechanism.room is not None
        parameters = {name: one.value(question.records) for name, one in step.parameters}
        wanted = step.mechanism.room(question.view, parameters)
        eligible = self.eligible(question, node)
        if not eligible:
            return None
        row = self._cache.table.row(self._cache.table.index(node))
        has, used = row["resources.allocatable"], row["resources.requested"]
        assert isinstance(has, Mapping)
        assert isinstance(used, Mapping)
        pods = self._cache.pods_on(node)
        takes = {key: {**pods[key].occupied, "pods": 1} for key in eligible}
        waiting = [{**view.occupied, "pods": 1} for view in self._nominations.respected(question, node)]
        free = {
            name: has.get(name, 0)
            - used.get(name, 0)
            + sum(one.get(name, 0) for one in takes.values())
            - sum(one.get(name, 0) for one in waiting)
            for name in wanted
        }
        room = Room(wanted, free)
        if not room.fits:
            return None
        found = reprieve(eligible, self.breaks(node, eligible), lambda key: room.stays(takes[key]))
        return found if found.keys else None

    def candidate(
        self, question: Question, node: str, victims: Victims[PodKey], *, exact: bool
    ) -> _Candidate:
        """A node with its place in policy's order."""
        pods = self._cache.pods_on(node)
        going = [pods[key] for key in victims.keys]
        facts = candidate_facts(node, going, victims.violations, question.records["now"])
        return _Candidate(node, victims, self._policy.order(question.records, facts), exact)

    def wanted(self, question: Question, nodes: int) -> int:
        """How many candidates end the search."""
        return candidates_to_find(nodes, *self._policy.search(question.records))

    def offset(self, nodes: int) -> int:
        """Where the search begins."""
        return self._draw(nodes)

    @property
    def cache(self) -> ClusterCache:
        return self._cache


class _Found:
    """One search."""

    def __init__(self, search: Search, question: Question, judged: Judged) -> None:
        self._search = search
        self._question = question
        self._table = search.cache.table
        steps = question.profile.filters
        count = len(self._table)
        hopeless = np.zeros(count, np.bool_)
        other = np.zeros(count, np.bool_)
        self._room: Step | None = None
        for step, verdicts, accepted in zip(steps, judged.verdicts, judged.accepted, strict=True):
            if verdicts is not None:
                hopeless |= verdicts.hopeless
                if step.mechanism is not None and step.mechanism.room is not None and self._room is None:
                    self._room = step
                else:
                    other |= verdicts.refused.any(axis=0)
            if accepted is not None and step.depends_on_pods:
                other |= ~accepted
            elif accepted is not None:
                hopeless |= ~accepted
        self._possible: Mask = ~hopeless
        self._other: Mask = other & self._possible

    def counts(self) -> Mapping[str, int]:
        """How many nodes could not be helped, and how many have nobody to go."""
        helpful = int(np.count_nonzero(self._possible))
        return {NOT_HELPFUL: len(self._possible) - helpful, NO_VICTIMS: helpful}

    def best(self) -> _Candidate | None:
        """The node that policy prefers; None when no node can be helped."""
        rows = np.flatnonzero(self._possible)
        if not len(rows):
            return None
        wanted = self._search.wanted(self._question, len(rows))
        start = int(np.searchsorted(rows, self._search.offset(len(self._possible))))
        names = [self._table.name(int(row)) for row in np.concatenate((rows[start:], rows[:start]))]
        stream = self._candidates(names)
        found = list(islice(stream, wanted))
        while found:
            if any(not one.victims.violations for one in found):
                chosen = self._verified(found)
                if chosen is not None:
                    return chosen
                found = []
            # Either all of them break budgets, or none was one after all: look further.
            more = list(islice(stream, wanted))
            if not more:
                return self._verified(found)
            found += more
        return None

    def _verified(self, found: list[_Candidate]) -> _Candidate | None:
        """The best of some candidates, those whose victims turn out to be others judged by these."""
        left = {one.node: one for one in found}
        while left:
            best = min(left.values(), key=lambda one: one.key)
            if best.exact:
                return best
            victims = self._search.exact(self._question, best.node)
            if victims is None:
                del left[best.node]
            elif victims == best.victims:
                return best
            else:
                left[best.node] = self._search.candidate(self._question, best.node, victims, exact=True)
        return None

    def _candidates(self, names: Iterable[str]) -> Iterator[_Candidate]:
        """The candidates among some nodes, in their order."""
        search, question = self._search, self._question
        worth = self._worth_a_look() if self._other.any() or self._room is None else None
        for name in names:
            if worth is not None and name in worth:
                victims = search.exact(question, name) if worth[name] else None
                exact = True
            elif self._room is not None:
                victims = search.by_room(question, self._room, name)
                exact = False
            else:
                victims, exact = search.exact(question, name), True
            if victims is not None:
                yield search.candidate(question, name, victims, exact=exact)

    def _worth_a_look(self) -> dict[str, bool]:
        """The nodes that something else than room refuses; whether they would pass without all who may go."""
        search, question = self._search, self._question
        supposed = search.bare(question)
        for name in supposed.outdated():
            supposed.set(name, None)
        rows = np.flatnonzero(self._other if self._room is not None else self._possible)
        names = [self._table.name(int(row)) for row in rows]
        for name in names:
            if supposed.change(name) is None:
                supposed.set(name, Change(search.eligible(question, name)))
        fresh = judge(question, supposed.table, local_only=True)
        fits = np.ones(len(supposed.table), np.bool_)
        for verdicts, accepted in zip(fresh.verdicts, fresh.accepted, strict=True):
            if verdicts is not None:
                fits &= ~verdicts.refused.any(axis=0)
            if accepted is not None:
                fits &= accepted
        return {name: bool(fits[supposed.table.index(name)]) for name in names}
