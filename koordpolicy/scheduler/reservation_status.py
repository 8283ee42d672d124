"""The status of Reservations, as scheduling changes it: available on a node, or why on none."""

from collections.abc import Callable, Mapping
from typing import Any

from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.cluster.reservation_policy import ATTEMPTS
from koordpolicy.kube import Cluster, Conflict, MergePatch, Object
from koordpolicy.kube.resources import RESERVATIONS
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import (
    CONDITION_RESERVATION_READY,
    CONDITION_RESERVATION_SCHEDULED,
    REASON_AVAILABLE,
    REASON_SCHEDULED,
    REASON_UNSCHEDULABLE,
    RESERVATION_AVAILABLE,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import NO_TEXT
from koordpolicy.model.reservation import Reservation, read_reservation
from koordpolicy.model.time import time_text

Status = dict[str, Any]


def reservation_of(pod: Pod) -> str:
    """The name of the Reservation that a pod stands for; empty for one that nodes run."""
    return pod.reservation


def reservation_reference(reservation: Reservation) -> Object:
    """What Events about a Reservation are about."""
    metadata = {"name": reservation.name, "uid": reservation.uid}
    return {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind, "metadata": metadata}


async def annotate(
    cluster: Cluster, name: str, uid: str, annotations: Mapping[str, str], attempts: int = ATTEMPTS
) -> None:
    """Write annotations on a Reservation, if they are not there. Raises KubeError; Conflict for one that is another."""
    for attempt in range(attempts):
        found = read_reservation(await cluster.get(RESERVATIONS, name))
        if uid and found.uid != uid:
            raise Conflict(f"reservation {name} is another one by now")
        if all(found.annotations.get(key) == value for key, value in annotations.items()):
            return
        metadata = {"resourceVersion": found.resource_version, "annotations": dict(annotations)}
        try:
            await cluster.patch(RESERVATIONS, name, MergePatch({"metadata": metadata}))
        except Conflict:
            if attempt + 1 == attempts:
                raise
        else:
            return


async def make_available(
    cluster: Cluster,
    name: str,
    uid: str,
    node: str,
    now: int,
    attempts: int = ATTEMPTS,
    annotations: Mapping[str, str] = NO_TEXT,
) -> None:
    """Say that a Reservation keeps its room on a node, and before that, in annotations, which CPUs and devices. Raises KubeError;
    Conflict for one that is another or has ended.
    """
    if annotations:
        await annotate(cluster, name, uid, annotations, attempts)

    def status(found: Reservation) -> Status | None:
        if found.over:
            raise Conflict(f"reservation {name} is not active: it is {found.phase}")
        if found.available:
            if found.node_name == node:
                return None
            raise Conflict(f"reservation {name} is on node {found.node_name} already")
        amounts = {
            resource: amount_text(resource, number)
            for resource, number in effective_requests(found.pod).items()
        }
        conditions = with_condition(found, CONDITION_RESERVATION_SCHEDULED, "True", REASON_SCHEDULED, "", now)
        ready = [one for one in conditions if one.get("type") != CONDITION_RESERVATION_READY]
        return {
            "phase": RESERVATION_AVAILABLE,
            "nodeName": node,
            "allocatable": {**amounts, **found.resized},
            "conditions": [
                *ready,
                condition(CONDITION_RESERVATION_READY, "True", REASON_AVAILABLE, "", now, now),
            ],
        }

    await change_status(cluster, name, uid, status, attempts)


async def say_unschedulable(
    cluster: Cluster, name: str, uid: str, message: str, since: int, attempts: int = ATTEMPTS
) -> None:
    """Say why a Reservation has no node; its phase stays. Raises KubeError."""

    def status(found: Reservation) -> Status | None:
        known = found.condition(CONDITION_RESERVATION_SCHEDULED)
        if known is not None and (known.status, known.reason, known.message) == (
            "False",
            REASON_UNSCHEDULABLE,
            message,
        ):
            return None
        return {
            "conditions": with_condition(
                found, CONDITION_RESERVATION_SCHEDULED, "False", REASON_UNSCHEDULABLE, message, since
            )
        }

    await change_status(cluster, name, uid, status, attempts)


async def change_status(
    cluster: Cluster,
    name: str,
    uid: str,
    make: Callable[[Reservation], Status | None],
    attempts: int = ATTEMPTS,
) -> bool:
    """Write what `make` says of a Reservation as it is now, and anew, at most so often in all, where somebody else wrote it
    meanwhile; whether anything was written. Raises KubeError.
    """
    for attempt in range(attempts):
        obj: Object = await cluster.get(RESERVATIONS, name)
        found = read_reservation(obj)
        if uid and found.uid != uid:
            raise Conflict(f"reservation {name} is another one by now")
        status = make(found)
        if status is None:
            return False
        body = {"metadata": {"resourceVersion": found.resource_version}, "status": status}
        try:
            await cluster.patch(RESERVATIONS, name, MergePatch(body), subresource="status")
        except Conflict:
            if attempt + 1 == attempts:
                raise
        else:
            return True
    return False


def with_condition(
    found: Reservation, type: str, status: str, reason: str, message: str, now: int
) -> list[Status]:
    """The conditions of a Reservation with one of them as it is now; its transition is when its status changed."""
    known = found.condition(type)
    since = known.since if known is not None and known.status == status and known.since else now
    others = [
        dict(one)
        for one in found.raw_status.get("conditions") or ()  # type: ignore[attr-defined]  # read before
        if one.get("type") != type
    ]
    return [*others, condition(type, status, reason, message, since, now)]


def condition(type: str, status: str, reason: str, message: str, since: int, now: int) -> Status:
    """A condition of a Reservation."""
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": time_text(since),
        "lastProbeTime": time_text(now),
    }
