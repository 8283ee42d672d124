"""Capacity: what is reserved comes off."""

from koordpolicy.algorithms.node_capacity import trimmed_allocatable
from koordpolicy.model.node import NodeReservation
from koordpolicy.model.protocol import BATCH_CPU

ALLOCATABLE = {"cpu": 4000, "memory": 100, BATCH_CPU: 50}


def test_what_is_reserved_comes_off_but_never_below_zero() -> None:
    reservation = NodeReservation({"cpu": 1500, "memory": 200, BATCH_CPU: 10, "unknown": 5})
    assert trimmed_allocatable(ALLOCATABLE, reservation, {BATCH_CPU}) == {
        "cpu": 2500,
        "memory": 0,
        BATCH_CPU: 50,
    }


def test_a_reservation_that_only_keeps_cpus_apart_takes_nothing() -> None:
    assert trimmed_allocatable(ALLOCATABLE, None, ()) is ALLOCATABLE
    apart = NodeReservation({"cpu": 2000}, frozenset({0, 1}), trims=False)
    assert trimmed_allocatable(ALLOCATABLE, apart, ()) is ALLOCATABLE
