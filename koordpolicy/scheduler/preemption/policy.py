"""What policy says of preemption, asked through programs made once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from koordpolicy.cluster.nodes import Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import PreparedDecision, Records, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import PodKey
from koordpolicy.model.table import NodeTable
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation, evaluate
from koordpolicy.scheduler.sortkeys import SortKey, sort_key

DEFAULT: Final = "DefaultPreemption"
"""The one plugin there is."""

NEVER: Final = "Never"

_SUM_OFFSET: Final = 2**31
"""Added to each priority of a sum, so that more pods never make it smaller."""

_FARTHEST: Final = 86_400 * NANOSECONDS
"""How far ahead filters are asked at most."""

_REMEMBERED: Final = 200_000
"""Answers about pods that are kept at once."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A cycle as of now, or as of `later`, when only filters that read the time can have another answer."""

    cycle: Cycle
    later: bool = False

    def evaluate(self, table: NodeTable, rows: Rows | None = None, *, local_only: bool = False) -> Evaluation:
        """What the filters say that matter then. Raises CycleProblem."""
        return evaluate(
            self.cycle, table, rows, filters_only=True, local_only=local_only, timed_only=self.later
        )


class PreemptionPolicy:
    """A profile's preemption. `enabled` says whether it names a plugin at all."""

    __slots__ = ("_ahead", "_eligible", "_eligible_known", "_importance", "_importance_known", "_order", "_policy",
                 "_respects", "_respects_known", "_search", "enabled")  # fmt: skip

    def __init__(self, graph: RuleGraph, profile: str) -> None:
        about = graph.about("SchedulingProfile", profile)
        target = f"{about.target}.preemption"
        self.enabled = about.value("preemption.plugin") == DEFAULT
        self._policy = prepared(graph, f"{target}.policy")
        self._eligible = prepared(graph, f"{target}.eligible")
        self._importance = prepared(graph, f"{target}.importance")
        self._order = prepared(graph, f"{target}.order")
        self._respects = prepared(graph, f"{target}.respects")
        self._ahead = prepared(graph, f"{target}.lookAhead")
        self._search = (prepared(graph, f"{target}.search.share"), prepared(graph, f"{target}.search.least"))
        self._eligible_known: dict[Any, bool] = {}
        self._respects_known: dict[Any, bool] = {}
        self._importance_known: dict[PodKey, tuple[PodView, SortKey]] = {}

    def wanted(self, records: Records) -> bool:
        """Whether a pod may displace others at all. Not where that cannot be told."""
        try:
            said = self._policy.value(records) if self.enabled else NEVER
        except CelError:
            return False
        return said is not None and said != NEVER

    def moments(self, cycle: Cycle) -> "tuple[Moment, ...]":
        """The cycle as of now, and as of when those who go will be gone, if time alone can change its answer."""
        present = Moment(cycle)
        if not cycle.profile.reads_time:
            return (present,)
        ahead = _number(self._ahead, cycle.records)
        if not isinstance(ahead, Duration) or ahead.ns <= 0:
            return (present,)
        then = Timestamp(cycle.records["now"].ns + min(ahead.ns, _FARTHEST))
        return present, Moment(replace(cycle, records={**cycle.records, "now": then}), later=True)

    @property
    def reads_victims(self) -> bool:
        """Whether the order of nodes depends on single victims."""
        return ("candidate", "pods") in self._order.facts

    def eligible_for(self, records: Records) -> Callable[[PodView], bool]:
        """Whether a pod on a node may go for the one that `records` speak of."""
        return _asker(self._eligible, self._eligible_known, "victim", records)

    def respected_by(self, records: Records) -> Callable[[PodView], bool]:
        """Whether a pod that a node is promised to counts for the one that `records` speak of."""
        if not self.enabled:
            return lambda _view: False
        return _asker(self._respects, self._respects_known, "nominated", records)

    def respects(self, records: Records, nominated: PodView) -> bool:
        """The same for one pod."""
        return self.respected_by(records)(nominated)

    def signature(self, records: Records) -> tuple[Any, ...]:
        """What `eligible` reads of everything but victims: equal signatures, equal victims."""
        return _read(self._eligible, records)

    def importance(self, victim: PodView, now: Timestamp) -> SortKey:
        """The place of a pod among those who may go, the most important first; at the end when it has none."""
        key = victim.pod.key
        known = self._importance_known.get(key)
        if known is not None and known[0] is victim:
            return known[1]
        found = sort_key(self._importance, {"victim": started(victim, now), "now": now})
        if victim.pod.started_at is not None and ("now", "") not in self._importance.facts:
            if len(self._importance_known) > _REMEMBERED:
                self._importance_known.clear()
            self._importance_known[key] = victim, found
        return found

    def order(self, records: Records, candidate: Record) -> SortKey:
        """The place of a node among those where room can be made, the best first."""
        return sort_key(self._order, {**records, "candidate": candidate})

    def search(self, records: Records) -> tuple[float, int]:
        """Share of the nodes in percent, and number of candidates, that end the search."""
        share, least = (_number(one, records) for one in self._search)
        return (100.0 if share is None else float(share)), (1 if least is None else int(least))


def started(view: PodView, now: Timestamp) -> Record:
    """A pod's facts; one that no node has taken on yet counts as taken on now."""
    return view.facts if "startedAt" in view.facts else {**view.facts, "startedAt": now}


def candidate_facts(
    node: str, victims: Sequence[PodView], violations: int, now: Timestamp, *, pods: bool = True
) -> Record:
    """The facts of a node from which pods would have to go: one at least, the most important first.

    Those of single `pods` can be left away where nobody reads them.
    """
    highest = max(view.priority for view in victims)
    starts = [view.pod.started_at for view in victims if view.priority == highest]
    return {
        "node": node,
        "violations": violations,
        "victims": len(victims),
        "highestPriority": highest,
        "prioritySum": sum(view.priority + _SUM_OFFSET for view in victims),
        "earliestStart": TIMES.timestamp(min(now.ns if start is None else start for start in starts)),
        "pods": [started(view, now) for view in victims] if pods else [],
    }


def _number(decision: PreparedDecision, records: Records) -> Any:
    try:
        return decision.value(records)
    except CelError:
        return None


def _read(decision: PreparedDecision, records: Records, without: str = "victim") -> tuple[Any, ...]:
    """The values that a decision reads of the records, those of one root left out."""
    found = []
    for root, path in sorted(decision.facts):
        if root != without:
            record = records.get(root)
            found.append(record if not path else (record or {}).get(path))
    return tuple(found)


def _asker(
    decision: PreparedDecision, known: dict[Any, bool], root: str, records: Records
) -> Callable[[PodView], bool]:
    """A decision about other pods; one that fails says no. Pods that agree in all it reads share an answer."""
    if decision.program is None:
        always = decision.constant is True
        return lambda _view: always
    mine = _read(decision, records, root)
    theirs = sorted(path for one, path in decision.facts if one == root)

    def ask(view: PodView) -> bool:
        facts = view.facts
        key = (mine, *[facts.get(path) for path in theirs])
        try:
            found = known.get(key)
        except TypeError:  # something that has no hash, such as labels
            return _true(decision, root, records, view)
        if found is None:
            if len(known) > _REMEMBERED:
                known.clear()
            found = known[key] = _true(decision, root, records, view)
        return found

    return ask


def _true(decision: PreparedDecision, root: str, records: Records, other: PodView) -> bool:
    try:
        return decision.value({**records, root: other.facts}) is True
    except CelError:
        return False
