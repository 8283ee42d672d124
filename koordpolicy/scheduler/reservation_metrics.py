"""What is counted of Reservations, under the names that koord-scheduler's have."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from koordpolicy.cluster.reservations import Reservations
from koordpolicy.model.protocol import (
    CPU,
    RESERVATION_AVAILABLE,
    RESERVATION_FAILED,
    RESERVATION_PENDING,
    RESERVATION_SUCCEEDED,
)
from koordpolicy.model.reservation import Reservation
from koordpolicy.runtime.counting import Sample
from koordpolicy.runtime.metrics.registry import Metrics

_PHASE: Final = "scheduler_reservation_status_phase"
_RESOURCE: Final = "scheduler_reservation_resource"
_PHASES: Final = (RESERVATION_PENDING, RESERVATION_AVAILABLE, RESERVATION_SUCCEEDED, RESERVATION_FAILED)
_AT_ONCE: Final = 200
"""Reservations that are looked at before others get their turn."""


class ReservationMetrics:
    """Shows them. `reservations` gives those of now. Once for the metrics of a process."""

    def __init__(self, metrics: Metrics, reservations: Callable[[], Reservations]) -> None:
        self._reservations = reservations
        self._phases, self._resources = _Rows(), _Rows()
        metrics.show_elsewhere(_PHASE, self._phases)
        metrics.show_elsewhere(_RESOURCE, self._resources)

    async def look(self) -> None:
        """Take up how Reservations stand now."""
        book = self._reservations()
        phases: list[Sample] = []
        resources: list[Sample] = []
        for at, one in enumerate(book.all):
            if at % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            if one.of_pod:
                continue
            phases += phase_rows(one)
            resources += resource_rows(one)
        self._phases.rows, self._resources.rows = phases, resources


class _Rows:
    """The figures of one metric as they were when they were looked at last; read from any thread."""

    def __init__(self) -> None:
        self.rows: list[Sample] = []

    def samples(self) -> list[Sample]:
        return self.rows


def phase_rows(reservation: Reservation) -> Iterator[Sample]:
    """1 for its phase, 0 for the others."""
    for phase in _PHASES:
        yield (reservation.name, phase), 1.0 if reservation.phase == phase else 0.0


def resource_rows(reservation: Reservation) -> Iterator[Sample]:
    """What it keeps, what its status says that owners have of that, and the share of it. CPU in cores, all else in units."""
    for resource, has in reservation.allocatable.items():
        taken = reservation.allocated.get(resource, 0)
        unit, scale = ("core", 1000) if resource == CPU else ("byte" if _in_bytes(resource) else "integer", 1)
        yield ("allocatable", reservation.name, resource, unit), has / scale
        yield ("allocated", reservation.name, resource, unit), taken / scale
        if has > 0:
            yield ("utilization", reservation.name, resource, "ratio"), taken / has


def _in_bytes(resource: str) -> bool:
    return (
        resource == "memory" or resource.endswith(("storage", "-memory")) or resource.startswith("hugepages-")
    )
