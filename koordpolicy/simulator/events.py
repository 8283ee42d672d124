"""Events of a simulation: told and correlated as on a real cluster, but counted where they would be written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from koordpolicy.graph import RuleGraph
from koordpolicy.kube import Object
from koordpolicy.kube.event_correlator import CorrelatedEvent, EventCorrelator, EventSeverity
from koordpolicy.model.pod import Pod
from koordpolicy.runtime.counting import Unscraped
from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.scheduler.decision_reporter import EVENTS, Audience, DecisionReporter


@dataclass(slots=True)
class ReasonCount:
    """How often Events of one reason were told, and the latest of them."""

    count: int
    latest: CorrelatedEvent


class CollectedEvents:
    """Events by reason. An `EventRecorder`: of each reason the number and the latest one are kept, however many there are.

    `now` gives nanoseconds since 1970. `dropped` counts those of objects that cause more than a cluster is told.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self.reasons: dict[str, ReasonCount] = {}
        self.dropped = 0
        self._correlator = EventCorrelator(CorrelatedEvent, now, EVENTS)

    def record(
        self,
        regarding: Object,
        reason: str,
        message: str,
        *,
        type: EventSeverity = "Normal",
        action: str = "",
    ) -> None:
        """See `EventRecorder`."""
        event = self._correlator.note(regarding, reason, message, type=type, action=action)
        if event is None:
            self.dropped += 1
        elif (known := self.reasons.get(reason)) is None:
            self.reasons[reason] = ReasonCount(1, event)
        else:
            known.count += 1
            known.latest = event


class _NoRevisions:
    """A simulation has a graph, and no revisions that come and go."""

    active = None
    candidate = None


class SimulatedReports:
    """What tells of the decisions of simulated schedulers."""

    def __init__(self, graph: RuleGraph, events: CollectedEvents, now: Callable[[], int]) -> None:
        self._graph = graph
        counters = Unscraped()
        troubles = Troubles(counters, _NoRevisions(), events, leads=lambda: False, now=now)
        self._audience = Audience(counters, DecisionCounts(counters), troubles, events)

    def reporter_of(
        self, profile: str, *, keeps_gangs: bool, unheeded: Callable[[Pod], Sequence[str]] = lambda _pod: ()
    ) -> DecisionReporter:
        """What tells of those by one profile; `keeps_gangs` and `unheeded` as of `DecisionReporter`."""
        return DecisionReporter(
            self._audience,
            lambda _: self._graph,
            profile,
            keeps_gangs=lambda: keeps_gangs,
            unheeded=unheeded,
        )
