"""The upkeep of Reservations: who has taken from each, and their end. Written by the scheduler that leads."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from koordpolicy.algorithms.reservation_capacity import sum_masked
from koordpolicy.algorithms.reservation_life import ended_at, following_phase
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.reservations import Reservations
from koordpolicy.kube import Cluster, Conflict, KubeError, NotFound, Preconditions, StrategicPatch
from koordpolicy.kube.resources import PODS, RESERVATIONS
from koordpolicy.model.pod import Pod
from koordpolicy.model.pod_reservations import allocated_uid
from koordpolicy.model.protocol import (
    CONDITION_RESERVATION_READY,
    REASON_EXPIRED,
    REASON_SUCCEEDED,
    RESERVATION_ALLOCATED,
    RESERVATION_CURRENT_OWNER,
    RESERVATION_FAILED,
    RESERVATION_SUCCEEDED,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import Amounts, ObjectError
from koordpolicy.model.reservation import CurrentOwner, Reservation
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.reservation_status import Status, change_status, with_condition

LOG: Final = logging.getLogger(__name__)

_LEAST: Final = 0.1
"""Seconds between two looks at least, whatever policy says."""
_ABSENT: Final = 3.0
"""Seconds between two looks where no policy speaks of Reservations."""

Tell = Callable[[Reservation, str, str], None]
"""Hears of what became of one: the reason of an Event, and its words."""


class ReservationUpkeep:
    """Keeps the status of those that keep room on nodes up to date, and deletes those that are over. `now` is nanoseconds since 1970.

    What fails is done at the next look; `failed` hears of errors that nobody foresaw. `together`: several are written at a time,
    which takes an event loop.
    """

    def __init__(
        self,
        cache: Callable[[], ClusterCache],
        cluster: Cluster,
        now: Callable[[], int],
        failed: Callable[[str], None] = lambda place: None,
        tell: Tell = lambda reservation, reason, message: None,
        *,
        together: bool = True,
    ) -> None:
        self._cache = cache
        self._cluster = cluster
        self._now = now
        self._failed = failed
        self._tell = tell
        self._together = together

    async def run(self) -> None:
        """Keep status up to date, again and again until cancelled."""
        while True:
            policy = self._reservations.policy
            await asyncio.sleep(_ABSENT if policy is None else _seconds(policy.every))
            await self._guarded("status of reservations", self.look)

    async def remove(self) -> None:
        """Delete those that have been over for long enough, again and again until cancelled."""
        while True:
            policy = self._reservations.policy
            await asyncio.sleep(_ABSENT if policy is None else _seconds(policy.removal_every))
            await self._guarded("removal of reservations", self.remove_once)

    async def look(self) -> int:
        """Write what differs; how many were written."""
        said = self._reservations.said
        written = await self._at_a_time(
            [one for one in said if not one.of_pod and self.status_of(one) is not None], self._written
        )
        return written + await self._at_a_time(
            [one for one in said if one.of_pod and self.owner_text(one)], self._owner_written
        )

    async def remove_once(self) -> int:
        """Delete those whose time has come; how many were."""
        return await self._at_a_time([one for one in self._reservations.said if self.due(one)], self._removed)

    def due(self, reservation: Reservation) -> bool:
        """Whether one that is over is to be deleted now."""
        policy = self._reservations.policy
        if policy is None or not reservation.over or reservation.deleting:
            return False
        removal = policy.removal(reservation)
        if not removal.enabled:
            return False
        node = reservation.node_name
        if removal.orphans and node and node not in self._cache():
            return True
        try:
            ended = ended_at(reservation)
        except ObjectError:
            return False
        return ended is not None and self._now() - ended > removal.after

    async def _written(self, one: Reservation) -> bool:
        attempts = self._reservations.attempts
        said: list[Status] = []

        def status(found: Reservation) -> Status | None:
            made = self.status_of(found)
            said[:] = [] if made is None else [made]
            return made

        if not await change_status(self._cluster, one.name, one.uid, status, attempts):
            return False
        for condition in said[0].get("conditions", ()):
            if condition["type"] == CONDITION_RESERVATION_READY and condition["status"] == "False":
                self._tell(one, condition["reason"], condition["message"] or _ENDED[condition["reason"]])
        return True

    def owner_text(self, reservation: Reservation) -> str:
        """What is to stand on a pod that operates as a reservation of who has taken from it; empty where it stands there, and
        where nobody has.
        """
        owners, _ = self._taken(reservation)
        if not owners:
            return ""
        said = {"namespace": owners[0].namespace, "name": owners[0].name, "uid": owners[0].uid}
        found = json.dumps(said, separators=(",", ":"))
        return "" if reservation.annotations.get(RESERVATION_CURRENT_OWNER) == found else found

    async def _owner_written(self, one: Reservation) -> bool:
        return await self._annotated(one.pod, RESERVATION_CURRENT_OWNER, self.owner_text(one))

    async def _removed(self, one: Reservation) -> bool:
        policy = self._reservations.policy
        if policy is not None and policy.removal(one).clears_pods:
            for view in [*self._cache().pods_on(one.node_name).values()]:
                if _uid(view) == one.uid:
                    await self._annotated(view.pod, RESERVATION_ALLOCATED, None)
        try:
            await self._cluster.delete(RESERVATIONS, one.name, preconditions=Preconditions(uid=one.uid))
        except (NotFound, Conflict):
            return False  # what we know is old
        return True

    async def _annotated(self, pod: Pod, key: str, value: str | None) -> bool:
        """Write an annotation of a pod, or take it away (None), with its status: pods themselves are not written."""
        body = {"metadata": {"uid": pod.uid, "annotations": {key: value}}}
        try:
            await self._cluster.patch(
                PODS, pod.name, StrategicPatch(body), namespace=pod.namespace, subresource="status"
            )
        except (NotFound, Conflict):
            return False
        return True

    async def _at_a_time(
        self, found: Sequence[Reservation], write: Callable[[Reservation], Awaitable[bool]]
    ) -> int:
        """Write about some, no more at a time than policy says; how many were written."""

        async def one_of(one: Reservation) -> bool:
            try:
                return await write(one)
            except KubeError as problem:
                LOG.warning("reservation %s is not written: %s", one.name, problem)
                return False

        if not self._together:
            return sum([await one_of(one) for one in found])
        policy = self._reservations.policy
        places = asyncio.Semaphore(1 if policy is None else max(1, policy.workers))

        async def in_place(one: Reservation) -> bool:
            async with places:
                return await one_of(one)

        return sum(await asyncio.gather(*map(in_place, found)))

    async def _guarded(self, place: str, once: Callable[[], Awaitable[int]]) -> None:
        try:
            await once()
        except Exception:
            LOG.exception("%s failed: internal error, please report", place)
            self._failed(place)

    @property
    def _reservations(self) -> Reservations:
        return self._cache().state.reservations

    def status_of(self, reservation: Reservation) -> Status | None:
        """What is to stand in its status; None where that stands there, and for one that has no node or is over."""
        reservation = self._reservations.kept(reservation)
        if not reservation.available:
            return None
        owners, allocated = self._taken(reservation)
        now, there = self._now(), reservation.node_name in self._cache()
        phase = following_phase(reservation, owners, allocated, now, node_is_there=there)
        if phase is None:
            return None
        found: Status = {"phase": phase}
        if phase != RESERVATION_FAILED:
            found["allocated"] = {name: amount_text(name, number) for name, number in allocated.items()}
            found["currentOwners"] = [
                {"namespace": one.namespace, "name": one.name, "uid": one.uid} for one in owners
            ]
        reason = {RESERVATION_FAILED: REASON_EXPIRED, RESERVATION_SUCCEEDED: REASON_SUCCEEDED}.get(phase)
        if reason is not None:
            message = "" if there else f"node {reservation.node_name} is gone"
            found["conditions"] = with_condition(
                reservation, CONDITION_RESERVATION_READY, "False", reason, message, now
            )
        return found

    def _taken(self, reservation: Reservation) -> tuple[tuple[CurrentOwner, ...], Amounts]:
        """The pods that the cluster shows to have taken from it, by UID, and what they have of it."""
        views = [
            view
            for view in self._cache().pods_on(reservation.node_name).values()
            if view.pod.node_name and _uid(view) == reservation.uid
        ]
        owners = [CurrentOwner(one.pod.namespace, one.pod.name, one.pod.uid) for one in views]
        allocated = sum_masked([one.occupied for one in views], reservation.allocatable)
        return tuple(sorted(owners, key=lambda one: one.uid)), allocated


_ENDED: Final = {
    REASON_EXPIRED: "its time is over",
    REASON_SUCCEEDED: "its owner has taken from it",
}


def _seconds(nanoseconds: int) -> float:
    return max(_LEAST, nanoseconds / NANOSECONDS)


def _uid(view: PodView) -> str:
    try:
        return allocated_uid(view.pod.annotations)
    except ObjectError:
        return ""
