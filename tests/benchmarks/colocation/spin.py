"""A unit of work for a processor: the same instructions whoever runs them, so that work can be counted."""

import time

from tests.benchmarks.measure import seconds

_STEPS = 2_000
"""Of one unit: some tens of microseconds."""


def spin(units: int) -> None:
    """Run that many units, and nothing else: no memory is asked for, no call waits."""
    for _ in range(units):
        value = 1
        for step in range(_STEPS):
            value = (value * 31 + step) & 0xFFFF


def units_in(duration: float) -> int:
    """How many units take that many seconds of a processor that nobody else wants; at least one."""
    return max(1, round(duration / seconds(lambda: spin(1))))


def spin_until(deadline: float, units: int = 20) -> int:
    """Units done until `time.monotonic()` has reached the deadline."""
    done = 0
    while time.monotonic() < deadline:
        spin(units)
        done += units
    return done
