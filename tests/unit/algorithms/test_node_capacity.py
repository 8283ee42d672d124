"""Capacity: what is reserved comes off, bound CPUs count amplified."""

import pytest

from koordpolicy.algorithms.node_capacity import AmplifiedCpu, trimmed_allocatable
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


@pytest.mark.parametrize(
    ("ratio", "requested", "bound", "request_", "binds", "fits"),
    [
        (1.5, 0, 0, 64_000, True, True),
        (1.5, 0, 0, 64_001, True, False),
        (1.5, 0, 0, 96_000, False, True),
        (1.5, 32_000, 32_000, 48_000, False, True),
        (1.5, 32_000, 32_000, 48_001, False, False),
        (1.0, 96_000, 96_000, 1, True, True),
        (2.0, 99_000, 0, 0, True, True),
    ],
)
def test_bound_cpus_count_at_their_amplified_size(
    ratio: float, requested: int, bound: int, request_: int, binds: bool, fits: bool
) -> None:
    assert AmplifiedCpu(ratio, 96_000, requested, bound).fits(request_, binds=binds) is fits
