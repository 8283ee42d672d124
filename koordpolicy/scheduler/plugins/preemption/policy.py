"""What policy says of preemption, asked through programs made once."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import PreparedDecision, Records, prepared
from koordpolicy.cluster.quota_of_pod import KIND
from koordpolicy.cluster.quotas import Quotas
from koordpolicy.cluster.reservations import is_reserve_pod
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.sortable import SortKey
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.pod_predicate import PodPredicate
from koordpolicy.scheduler.sortkeys import sort_key

NEVER: Final = "Never"

_SUM_OFFSET: Final = 2**31
"""Added to each priority of a sum, so that more pods never make it smaller."""

_REMEMBERED: Final = 200_000
"""Places of pods that are kept at once."""


class PreemptionPolicy:
    """What a profile says of who goes for whom, and of pods of quotas what these say beside."""

    __slots__ = (
        "_eligible", "_importance", "_importance_known", "_order", "_policy", "_quotas", "_search", "_within_quotas",
    )  # fmt: skip

    def __init__(self, graph: RuleGraph, profile: str, quotas: Quotas | None = None) -> None:
        self._quotas = quotas
        self._within_quotas = PodPredicate(graph, f"{KIND}.scheduling.preempts", "victim")
        target = f"{graph.about('SchedulingProfile', profile).target}.preemption"
        self._policy = prepared(graph, f"{target}.policy")
        self._eligible = PodPredicate(graph, f"{target}.eligible", "victim")
        self._importance = prepared(graph, f"{target}.importance")
        self._order = prepared(graph, f"{target}.order")
        self._search = tuple(
            prepared(graph, f"{target}.search.{name}") for name in ("share", "least", "most")
        )
        self._importance_known: dict[PodKey, tuple[PodView, SortKey]] = {}

    def wanted(self, records: Records) -> bool:
        """Whether a pod may displace others at all. Not where that cannot be told."""
        try:
            said = self._policy.value(records)
        except CelError:
            return False
        return said is not None and said != NEVER

    @property
    def reads_victims(self) -> bool:
        """Whether the order of nodes depends on single victims."""
        return ("candidate", "pods") in self._order.facts

    @property
    def eligible_reads(self) -> frozenset[str]:
        """The facts by which it is said who may go."""
        return self._eligible.reads

    def eligible_for(self, records: Records) -> Callable[[PodView], bool]:
        """Whether a pod on a node may go for the one that `records` speak of."""
        by_policy, own = self._eligible.bound(records), self._quota_of(records)
        quotas = self._quotas

        def asked(view: PodView) -> bool:
            return not is_reserve_pod(view) and by_policy(view)  # a Reservation is no pod to be deleted

        if not own or quotas is None:
            return asked
        within: dict[str, Callable[[PodView], bool]] = {}

        def eligible(view: PodView) -> bool:
            if not asked(view):
                return False
            member = quotas.member(view.pod.key)
            name = "" if member is None else member.quota
            found = within.get(name)
            if found is None:
                both = {"quota": quotas.record(own), "victimQuota": quotas.record(name)}
                found = within[name] = self._within_quotas.bound({**records, **both})
            return found(view)

        return eligible

    def signature(self, records: Records) -> tuple[Any, ...]:
        """What `eligible` reads of everything but victims: equal signatures, equal victims."""
        own, quotas = self._quota_of(records), self._quotas
        said = self._eligible.signature(records)
        if not own or quotas is None:
            return said
        return (*said, own, quotas.changes, *self._within_quotas.signature(records))

    def _quota_of(self, records: Records) -> str:
        """The quota of the pod that is decided on; empty where it is in none of a tree."""
        quotas = self._quotas
        if quotas is None or not quotas.active:
            return ""
        pod = records["pod"]
        member = quotas.member((pod["namespace"], pod["name"]))
        return "" if member is None or quotas.outside(member.quota) else member.quota

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

    def search(self, records: Records) -> tuple[float, int, int]:
        """Share of the nodes in percent, and number of candidates, that end the search; and of questions to single nodes."""
        share, least, most = (_number(one, records) for one in self._search)
        return 100.0 if share is None else float(share), 1 if least is None else int(least), int(most or 1)


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
