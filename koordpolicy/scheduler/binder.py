"""Decisions carried out on a cluster: a pod is bound, or its condition says why it is not.

`plan` is a plain function: what is to be written, given the pod as the cluster has it. Planning the
same decision again after it was applied gives nothing to write.
"""

from dataclasses import dataclass
from typing import Final

from koordpolicy.kube import Cluster, Conflict, KubeError, NotFound, StrategicPatch
from koordpolicy.kube.resources import PODS
from koordpolicy.model.pod import Condition, Pod
from koordpolicy.model.protocol import CONDITION_SCHEDULED
from koordpolicy.model.time import time_text
from koordpolicy.scheduler.decision import Decision, PodKey

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"

_FALSE: Final = "False"


@dataclass(frozen=True, slots=True)
class Bind:
    """Place a pod on a node. The pod must still be the one of this uid (empty: any)."""

    pod: PodKey
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Report:
    """Write into a pod's condition why it is not scheduled. `since` is nanoseconds since 1970."""

    pod: PodKey
    reason: str
    message: str
    since: int


Plan = Bind | Report


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a plan. `error` is None when it was carried out, or needed no carrying out any more."""

    plan: Plan
    error: KubeError | None = None

    @property
    def lost(self) -> bool:
        """Whether the pod is gone, or in other hands: trying again makes no sense."""
        return isinstance(self.error, NotFound | Conflict)


def plan(decision: Decision, pod: Pod, now: int) -> Plan | None:
    """What is to be written for a decision on a pod as the cluster has it; None for nothing."""
    if decision.placed:
        return None if pod.node_name else Bind(decision.pod, decision.uid, decision.node)
    reason = SCHEDULER_ERROR if decision.problem else UNSCHEDULABLE
    known = pod.condition(CONDITION_SCHEDULED)
    if known is not None and (known.status, known.reason, known.message) == (
        _FALSE,
        reason,
        decision.message,
    ):
        return None
    return Report(decision.pod, reason, decision.message, _since(known, now))


def _since(known: Condition | None, now: int) -> int:
    """A condition's time is that of its last change of status, not of its text."""
    if known is not None and known.status == _FALSE and known.since is not None:
        return known.since
    return now


async def apply(cluster: Cluster, planned: Plan) -> Outcome:
    """Carry a plan out. A pod that is bound already, or gone, is an outcome and no exception."""
    namespace, name = planned.pod
    try:
        if isinstance(planned, Bind):
            await cluster.bind(namespace, name, planned.node, uid=planned.uid)
        else:
            await cluster.patch(PODS, name, _condition(planned), namespace=namespace, subresource="status")
    except KubeError as error:
        return Outcome(planned, error)
    return Outcome(planned)


def _condition(report: Report) -> StrategicPatch:
    condition = {
        "type": CONDITION_SCHEDULED,
        "status": _FALSE,
        "reason": report.reason,
        "message": report.message,
        "lastTransitionTime": time_text(report.since),
    }
    return StrategicPatch({"status": {"conditions": [condition]}})
