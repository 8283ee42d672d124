"""The upkeep of Reservations: who has taken from each, and their end. Written by the scheduler that leads."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from koordpolicy.algorithms.reservation_capacity import sum_masked
from koordpolicy.algorithms.reservation_life import following_phase
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.kube import Cluster, KubeError
from koordpolicy.model.pod_reservations import allocated_uid
from koordpolicy.model.protocol import (
    CONDITION_RESERVATION_READY,
    REASON_EXPIRED,
    REASON_SUCCEEDED,
    RESERVATION_FAILED,
    RESERVATION_SUCCEEDED,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import Amounts, ObjectError
from koordpolicy.model.reservation import CurrentOwner, Reservation
from koordpolicy.scheduler.reservation_status import Status, change_status, with_condition

LOG: Final = logging.getLogger(__name__)

_EVERY: Final = 3.0
"""Seconds between two looks, the least after which Koordinator's controller looks again."""


class ReservationUpkeep:
    """Keeps the status of those that keep room on nodes up to date. `now` is nanoseconds since 1970.

    What fails is done at the next look; `failed` hears of errors that nobody foresaw.
    """

    def __init__(
        self,
        cache: Callable[[], ClusterCache],
        cluster: Cluster,
        now: Callable[[], int],
        failed: Callable[[str], None] = lambda place: None,
    ) -> None:
        self._cache = cache
        self._cluster = cluster
        self._now = now
        self._failed = failed

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.look()
            except Exception:
                LOG.exception("reservations are not kept up to date: internal error, please report")
                self._failed("reservations")

    async def look(self) -> int:
        """Write what differs; how many were written."""
        written = 0
        for one in self._cache().state.reservations.all:
            if self.status_of(one) is None:
                continue
            try:
                written += await change_status(self._cluster, one.name, one.uid, self.status_of)
            except KubeError as problem:
                LOG.warning("the status of reservation %s is not written: %s", one.name, problem)
        return written

    def status_of(self, reservation: Reservation) -> Status | None:
        """What is to stand in its status; None where that stands there, and for one that has no node or is over."""
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


def _uid(view: PodView) -> str:
    try:
        return allocated_uid(view.pod.annotations)
    except ObjectError:
        return ""
