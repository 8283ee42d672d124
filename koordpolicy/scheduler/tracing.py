"""Spans of decisions on pods that are traced, and of the bindings that follow from them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from koordpolicy.diagnostics.wording import worded
from koordpolicy.model.pod import PodKey
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.trace_context import Attributes, TraceContext
from koordpolicy.runtime.tracing import Tracing
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.driver import Action, Settled

_MOST: Final = 10_000
"""Decisions whose writes are on their way that are remembered."""


class DecisionSpans:
    """Makes a span `schedule` of each decision, and below it `bind` of what it took to carry it out.

    `revision_of` gives the name of a graph's revision by its digest, `now` nanoseconds since 1970.
    """

    def __init__(
        self, tracing: Tracing, profile: str, revision_of: Callable[[str], str], now: Callable[[], int]
    ) -> None:
        self._tracing = tracing
        self._profile = profile
        self._revision_of = revision_of
        self._now = now
        self._written: OrderedDict[PodKey, tuple[TraceContext, int]] = OrderedDict()

    def timed(self, action: Action, seconds: float) -> None:
        """A decision has been made just now, and took so long."""
        pod, decision = action.pod, action.decision
        context = self._tracing.context(pod.uid, pod.annotations)
        if context is None:
            return
        ended = self._now()
        began = ended - round(seconds * NANOSECONDS)
        problem = str(decision.problem) if decision.problem else ""
        below = self._tracing.add(
            "schedule", context, began, ended, {**self._attributes(decision), **_result(decision)}, problem
        )
        if action.plan is not None:
            self._written[pod.key] = below, ended
            if len(self._written) > _MOST:
                self._written.popitem(last=False)

    def settled(self, settled: Settled) -> None:
        """Nothing is left to be done about a decision."""
        found = self._written.pop(settled.pod.key, None)
        if found is None or settled.outcome is None:
            return
        context, began = found
        error = settled.outcome.error
        name = "bind" if settled.decision.placed else "report"
        attributes = self._attributes(settled.decision)
        self._tracing.add(
            name, context, began, self._now(), attributes, "" if error is None else worded(error)
        )

    def _attributes(self, decision: PodDecision) -> dict[str, str | int]:
        return {
            "k8s.namespace.name": decision.pod[0],
            "k8s.pod.name": decision.pod[1],
            "k8s.pod.uid": decision.uid,
            "koordpolicy.profile": self._profile,
            "koordpolicy.revision": self._revision_of(decision.digest),
        }


def _result(decision: PodDecision) -> Attributes:
    if decision.placed:
        return {"koordpolicy.result": "placed", "k8s.node.name": decision.node}
    return {
        "koordpolicy.result": "error" if decision.problem else "unschedulable",
        "koordpolicy.message": decision.message,
    }
