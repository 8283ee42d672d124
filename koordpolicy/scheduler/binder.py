"""Decisions carried out on a cluster: a pod is bound, or its condition says why it is not.

`plan` is a plain function: what is to be written, given the pod as the cluster has it. Planning the
same decision again after it was applied gives nothing to write.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from koordpolicy.cluster.reservation_policy import ATTEMPTS
from koordpolicy.kube import Cluster, Conflict, KubeError, NotFound, Preconditions, StrategicPatch
from koordpolicy.kube.resources import PODS
from koordpolicy.model.pod import Pod, PodCondition, PodKey
from koordpolicy.model.protocol import (
    CONDITION_DISRUPTION_TARGET,
    CONDITION_SCHEDULED,
    REASON_PREEMPTION,
    SHARD,
)
from koordpolicy.model.reading import NO_TEXT
from koordpolicy.model.time import time_text
from koordpolicy.scheduler.decision import PodDecision, Victim
from koordpolicy.scheduler.plugins.base import Port, Sleep, Write
from koordpolicy.scheduler.reservation_status import make_available, reservation_of, say_unschedulable
from koordpolicy.scheduler.shards import route_text

LOG: Final = logging.getLogger(__name__)

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"

_FALSE: Final = "False"
_CLEARED: Final = StrategicPatch({"status": {"nominatedNodeName": None}})


class Binding(NamedTuple):
    """Place a pod on a node, with these annotations. The pod must still be the one of this uid (empty: any).

    `reservation` is the name of the Reservation that the pod stands for, empty for none: then its status says where it is.
    """

    pod: PodKey
    uid: str
    node: str
    annotations: Mapping[str, str] = NO_TEXT
    reservation: str = ""
    now: int = 0


class Prebind(NamedTuple):
    """Write what plugins took for a pod, and wait until it is so; `then` it may be bound."""

    then: Binding
    writes: tuple[Write, ...]

    @property
    def pod(self) -> PodKey:
        """The pod that is to be bound."""
        return self.then.pod


@dataclass(frozen=True, slots=True)
class Report:
    """Write into a pod's condition why it is not scheduled. `since` is nanoseconds since 1970.

    `nominated` is the node that it waits for, empty for none; None leaves alone what stands there. `homeward`
    takes away the way on which it came from another shard.
    """

    pod: PodKey
    reason: str
    message: str
    since: int
    nominated: str | None = None
    homeward: bool = False
    reservation: str = ""


@dataclass(frozen=True, slots=True)
class PassOn:
    """Give a pod into the hands of another shard."""

    pod: PodKey
    uid: str
    route: str


@dataclass(frozen=True, slots=True)
class Preempt:
    """Make room: say why a pod waits and for which node, and send the victims away.

    `cleared` are pods that wait for the node no longer, `beside` those that room is made for as well, with their nodes.
    """

    report: Report
    victims: tuple[Victim, ...]
    cleared: tuple[PodKey, ...]
    now: int
    beside: tuple[tuple[PodKey, str], ...] = ()

    @property
    def pod(self) -> PodKey:
        """The pod that room is made for."""
        return self.report.pod


WritePlan = Prebind | Binding | Report | PassOn | Preempt


class UnforeseenError(KubeError):
    """A write ended with an error that nobody foresaw."""

    @classmethod
    def of(cls, problem: Exception) -> "UnforeseenError":
        """What was raised, in words."""
        return cls(f"internal error, please report: {type(problem).__name__}: {problem}")


class OvertakenError(Conflict):
    """What was on its way is not any more, and nothing failed: its pod went another way, or this process ends."""


class WriteOutcome(NamedTuple):
    """What came of a plan. `error` is None when it was carried out, or needed no carrying out any more."""

    plan: WritePlan
    error: KubeError | None = None

    @property
    def lost(self) -> bool:
        """Whether the pod is gone, or in other hands: trying again makes no sense."""
        return isinstance(self.error, NotFound | Conflict)

    @property
    def overtaken(self) -> bool:
        """Whether a binding came to nothing though nothing failed: its pod is gone, or replaced, or bound already, or not
        on its way any more.
        """
        return isinstance(self.error, OvertakenError) or (self.lost and isinstance(self.plan, Binding))


def plan(decision: PodDecision, pod: Pod, now: int) -> WritePlan | None:
    """What is to be written for a decision on a pod as the cluster has it; None for nothing."""
    if decision.placed:
        if pod.node_name:
            return None
        placed, reservation = Binding(decision.pod, decision.uid, decision.node), reservation_of(pod)
        return placed._replace(reservation=reservation, now=now) if reservation else placed
    if decision.route:
        return PassOn(decision.pod, decision.uid, route_text(decision.route))
    reason = SCHEDULER_ERROR if decision.problem else UNSCHEDULABLE
    known = pod.condition(CONDITION_SCHEDULED)
    nominated = None if decision.promised == pod.nominated_node else decision.promised
    homeward = decision.route is not None
    report = Report(
        decision.pod, reason, decision.message, _since(known, now), nominated, homeward, reservation_of(pod)
    )
    if decision.preemption is not None:
        made = decision.preemption
        return Preempt(report, made.sent_away, made.cleared, now, made.beside)
    said = None if known is None else (known.status, known.reason, known.message)
    return (
        None if nominated is None and not homeward and said == (_FALSE, reason, decision.message) else report
    )


def _since(known: PodCondition | None, now: int) -> int:
    """A condition's time is that of its last change of status, not of its text."""
    if known is not None and known.status == _FALSE and known.since is not None:
        return known.since
    return now


async def apply(
    cluster: Cluster,
    planned: WritePlan,
    port: Port | None = None,
    sleep: Sleep = asyncio.sleep,
    *,
    attempts: int = ATTEMPTS,
) -> WriteOutcome:
    """Carry a plan out. A pod that is bound already, or gone, is an outcome and no exception, and so is an error that
    nobody foresaw: then the cluster may have taken the write or not, and says so itself.

    A `Prebind` writes by `port` (None: the cluster itself), and waits by `sleep`, for seconds. The status of a Reservation is made
    anew `attempts` times at most.
    """
    namespace, name = planned.pod
    try:
        if isinstance(planned, Prebind):
            for write in planned.writes:
                await write(port or cluster, sleep)
        elif isinstance(planned, Binding):
            if planned.reservation:
                await make_available(
                    cluster,
                    planned.reservation,
                    planned.uid,
                    planned.node,
                    planned.now,
                    attempts,
                    planned.annotations,
                )
            else:
                await cluster.bind(
                    namespace, name, planned.node, uid=planned.uid, annotations=planned.annotations or None
                )
        elif isinstance(planned, Preempt):
            await _make_room(cluster, planned, attempts)
        elif isinstance(planned, PassOn):
            body = {"metadata": {"uid": planned.uid, "annotations": {SHARD: planned.route}}}
            await cluster.patch(PODS, name, StrategicPatch(body), namespace=namespace, subresource="status")
        else:
            await _tell(cluster, planned, attempts)
    except KubeError as error:
        return WriteOutcome(planned, error)
    except Exception as problem:
        LOG.exception("the write about pod %s/%s failed", namespace, name)
        return WriteOutcome(planned, UnforeseenError.of(problem))
    return WriteOutcome(planned)


async def _make_room(cluster: Cluster, planned: Preempt, attempts: int) -> None:
    """The pod's own status first, and that of those beside it: after a restart their nodes show for whom the victims went."""
    namespace, name = planned.pod
    await _tell(cluster, planned.report, attempts)
    for (where, other), node in planned.beside:
        body = StrategicPatch({"status": {"nominatedNodeName": node}})
        with suppress(NotFound):
            await cluster.patch(PODS, other, body, namespace=where, subresource="status")
    for where, other in planned.cleared:
        with suppress(NotFound):
            await cluster.patch(PODS, other, _CLEARED, namespace=where, subresource="status")
    message = f"preempted for pod {namespace}/{name}"
    for victim in planned.victims:
        with suppress(NotFound, Conflict):  # gone already, or another pod of that name
            await _send_away(cluster, victim, message, planned.now)


async def _send_away(cluster: Cluster, victim: Victim, message: str, now: int) -> None:
    namespace, name = victim.pod
    condition = {
        "type": CONDITION_DISRUPTION_TARGET,
        "status": "True",
        "reason": REASON_PREEMPTION,
        "message": message,
        "lastTransitionTime": time_text(now),
    }
    body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
    await cluster.patch(
        PODS, name, StrategicPatch(body if victim.uid else {"status": body["status"]}), namespace=namespace,
        subresource="status",
    )  # fmt: skip
    await cluster.delete(PODS, name, namespace=namespace, preconditions=Preconditions(uid=victim.uid))


async def _tell(cluster: Cluster, report: Report, attempts: int) -> None:
    """Write why a pod, or the Reservation that it stands for, has no node."""
    namespace, name = report.pod
    if report.reservation:
        await say_unschedulable(cluster, report.reservation, name, report.message, report.since, attempts)
    else:
        await cluster.patch(PODS, name, _condition(report), namespace=namespace, subresource="status")


def _condition(report: Report) -> StrategicPatch:
    condition = {
        "type": CONDITION_SCHEDULED,
        "status": _FALSE,
        "reason": report.reason,
        "message": report.message,
        "lastTransitionTime": time_text(report.since),
    }
    status: dict[str, object] = {"conditions": [condition]}
    if report.nominated is not None:
        status["nominatedNodeName"] = report.nominated or None
    body: dict[str, object] = {"status": status}
    if report.homeward:
        body["metadata"] = {"annotations": {SHARD: None}}
    return StrategicPatch(body)
