"""What becomes of decisions, as metrics and as Events that people read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.cluster.cpu_accounts import CPUClaim
from koordpolicy.cluster.device_cards import DeviceClaim
from koordpolicy.diagnostics.wording import worded
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.event_correlator import EventLimits, EventRecorder
from koordpolicy.kube.resources import RESERVATIONS
from koordpolicy.model.pod import Pod
from koordpolicy.runtime.counting import Counters
from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.reports.troubles import FEW, Troubles
from koordpolicy.scheduler.decision import CycleFailure, PostFilterResult
from koordpolicy.scheduler.decision_log import PlacementLog
from koordpolicy.scheduler.driver import Settled
from koordpolicy.scheduler.not_enforced import not_enforced
from koordpolicy.scheduler.profile import place_of
from koordpolicy.scheduler.reservation_status import reservation_of

_SCHEDULED: Final = "Scheduled"
_PREEMPTED: Final = "Preempted"
_PREEMPTS: Final = "Preempting"
_NAMED: Final = 5
"""Pods that the Event about whom they go for names."""

EVENTS: Final = EventLimits(queue=20_000, workers=16, unlimited=frozenset({_SCHEDULED, _PREEMPTED}))
"""Each pod that is scheduled or preempted has its Event, as users know it, however much was said of it while it waited;
while a backlog drains they may come later."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Who is told: what counts decisions, by result and by revision, what keeps track of failures, what tells people.

    `revision_of` gives what people call the revision of a digest.
    """

    metrics: Counters
    counts: DecisionCounts
    troubles: Troubles
    recorder: EventRecorder
    revision_of: Callable[[str], str] = str


class DecisionReporter:
    """Tells of the decisions by one profile. `graph` gives the revision of a digest as far as it decides here, else the one that
    does; `log` writes some of them down. `keeps_gangs` says whether pods of gangs are placed together, `unheeded` what else the
    object of a pod's gang asks for in vain.
    """

    def __init__(
        self,
        audience: Audience,
        graph: Callable[[str], RuleGraph],
        profile: str,
        log: PlacementLog | None = None,
        keeps_gangs: Callable[[], bool] = lambda: False,
        unheeded: Callable[[Pod], Sequence[str]] = lambda _pod: (),
    ) -> None:
        self._audience = audience
        self._keeps_gangs = keeps_gangs
        self._unheeded = unheeded
        self._graph = graph
        self._profile = profile
        self._log = log
        self._decision = f"SchedulingProfile/{profile}"

    def settled(self, settled: Settled) -> None:
        """Count a decision, and tell people of it."""
        decision, outcome = settled.decision, settled.outcome
        result = "error" if decision.problem else "unschedulable"
        if decision.placed:
            result = "scheduled" if outcome is None or outcome.error is None else "bind_failed"
        elif decision.passed_on:
            result = "passed_on"
        self._audience.metrics.add("koordpolicy_scheduler_attempts_total", result=result)
        revision = self._audience.revision_of(decision.digest)
        self._audience.counts.add(self._decision, revision, failed=_of_policy(decision.failure))
        if self._log is not None:
            failure = None if outcome is None else outcome.error
            self._log.settled(decision, result, decision.problem if failure is None else worded(failure))
        about = _about(settled)
        recorder = self._audience.recorder
        of_many = self._trouble(settled)
        if result == "scheduled":
            message = f"Successfully assigned {'/'.join(decision.pod)} to {decision.node}"
            recorder.record(about, _SCHEDULED, message, action="Binding")
            claims = tuple(decision.claims.values()) if decision.claims else ()
            lacking = not_enforced(
                settled.pod,
                self._graph(decision.digest),
                gangs=self._keeps_gangs(),
                devices=bool(claims) and any(isinstance(claim, DeviceClaim) for claim in claims),
                cpus=bool(claims) and any(isinstance(claim, CPUClaim) for claim in claims),
            )
            if settled.pod.scheduling_group:
                lacking += tuple(self._unheeded(settled.pod))
            if lacking:
                message = f"Placed without what is not yet enforced: {', '.join(lacking)}"
                recorder.record(about, "NotEnforced", message, type="Warning", action="Scheduling")
        elif result == "bind_failed":
            assert outcome is not None
            if not outcome.overtaken:
                recorder.record(about, "FailedBinding", str(outcome.error), type="Warning", action="Binding")
        elif result != "passed_on" and not of_many:
            recorder.record(about, "FailedScheduling", decision.message, type="Warning", action="Scheduling")
        room = decision.preemption
        if room is not None and room.sent_away and (outcome is None or outcome.error is None):
            recorder.record(about, _PREEMPTS, _makes_room(room), action="Preempting")
            for victim in room.sent_away:
                gone = {"namespace": victim.pod[0], "name": victim.pod[1], "uid": victim.uid}
                node = victim.node or room.node
                message = f"Preempted by pod {decision.uid} on node {node}"
                one = {"apiVersion": "v1", "kind": "Pod", "metadata": gone}
                recorder.record(one, _PREEMPTED, message, action="Preempting")

    def _trouble(self, settled: Settled) -> bool:
        """Note what failed; whether this is one of so many that it need not have an Event of its own."""
        decision, failure = settled.decision, settled.decision.failure
        if failure is None and not decision.refusals and not decision.failed_scores:
            return False
        troubles, example = self._audience.troubles, f"pod {'/'.join(settled.decision.pod)}"
        if failure is not None and _of_policy(failure):
            found = troubles.add(
                self._decision,
                decision.digest,
                str(failure),
                rule=failure.step,
                place=failure.place,
                example=example,
                facts=lambda: settled.pod,
                cause=failure.cause,
            )
            return found.count > FEW
        of_many = False
        for refusals in decision.refusals:
            if refusals.error:
                step = f"filter:{refusals.filter}"
                place = place_of(self._graph(decision.digest), self._profile, step)
                text = f"{refusals.error} (filter `{refusals.filter}`, {place})"
                found = troubles.add(
                    self._decision, decision.digest, text, rule=step, place=place, example=example
                )
                of_many |= found.count > FEW and refusals.nodes == decision.nodes
        for failed in decision.failed_scores:
            step = f"score:{failed.score}"
            place = place_of(self._graph(decision.digest), self._profile, step)
            text = f"{failed.error} (score `{failed.score}` counts 0, {place})"
            troubles.add(self._decision, decision.digest, text, rule=step, place=place, example=example)
        return of_many

    def told(self, settled: Settled) -> None:
        """Tell people what was found out of a pod that waits, beside decisions."""
        if settled.outcome is not None and settled.outcome.error is None:
            about = _about(settled)
            message = settled.decision.message
            recorder = self._audience.recorder
            recorder.record(about, "FailedScheduling", message, type="Warning", action="Scheduling")

    def evaluated(self, count: int) -> None:
        """Count evaluations of all nodes for advice."""
        self._audience.metrics.add("koordpolicy_scheduler_advice_evaluations_total", count)


def _makes_room(room: PostFilterResult) -> str:
    """Who goes for a pod, and from where, as its Event says."""
    going = sorted(f"{'/'.join(victim.pod)} on {victim.node or room.node}" for victim in room.sent_away)
    more = f", and {len(going) - _NAMED} more" if len(going) > _NAMED else ""
    return f"Preempts {', '.join(going[:_NAMED])}{more}"


def _of_policy(failure: CycleFailure | None) -> bool:
    """Whether a revision is to blame, or we are, rather than whoever made an object that cannot be read."""
    return failure is not None and not failure.of_object


def _about(settled: Settled) -> dict[str, object]:
    """What Events are about: the pod, or the Reservation that it stands for."""
    name = reservation_of(settled.pod)
    if name:
        metadata = {"name": name, "uid": settled.decision.uid}
        return {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind, "metadata": metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _identity(settled)}


def _identity(settled: Settled) -> dict[str, str]:
    namespace, name = settled.decision.pod
    return {"namespace": namespace, "name": name, "uid": settled.decision.uid}
