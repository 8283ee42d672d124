"""What becomes of decisions, as metrics and as Events that people read."""

from koordpolicy.runtime.component import Component
from koordpolicy.scheduler.loop import Settled


class Telling:
    """Tells of the decisions by one profile."""

    def __init__(self, component: Component, profile: str) -> None:
        self._component = component
        self._decision = f"SchedulingProfile/{profile}"

    def settled(self, settled: Settled) -> None:
        """Count a decision, and tell people of it."""
        decision, outcome = settled.decision, settled.outcome
        result = "error" if decision.problem else "unschedulable"
        if decision.placed:
            result = "scheduled" if outcome is None or outcome.error is None else "bind_failed"
        elif decision.passed_on:
            result = "passed_on"
        self._component.process.metrics.add("koordpolicy_scheduler_attempts_total", result=result)
        self._component.counts.add(self._decision, decision.digest, failed=bool(decision.problem))
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": _identity(settled)}
        recorder = self._component.recorder
        if result == "scheduled":
            message = f"Successfully assigned {'/'.join(decision.pod)} to {decision.node}"
            recorder.record(about, "Scheduled", message, action="Binding")
        elif result == "bind_failed":
            assert outcome is not None
            recorder.record(about, "FailedBinding", str(outcome.error), type="Warning", action="Binding")
        elif result != "passed_on":
            recorder.record(about, "FailedScheduling", decision.message, type="Warning", action="Scheduling")
        if decision.preemption is not None and (outcome is None or outcome.error is None):
            for victim in decision.preemption.victims:
                gone = {"namespace": victim.pod[0], "name": victim.pod[1], "uid": victim.uid}
                message = f"Preempted by pod {decision.uid} on node {decision.preemption.node}"
                one = {"apiVersion": "v1", "kind": "Pod", "metadata": gone}
                recorder.record(one, "Preempted", message, action="Preempting")


def _identity(settled: Settled) -> dict[str, str]:
    namespace, name = settled.decision.pod
    return {"namespace": namespace, "name": name, "uid": settled.decision.uid}
