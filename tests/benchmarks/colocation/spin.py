"""A unit of work for a processor: the same instructions whoever runs them, so that work can be counted."""

import time
from statistics import median

_STEPS = 2_000
"""Of one unit: some tens of microseconds."""
_TRIES = 51
_AT_ONCE = 20


def spin(units: int) -> None:
    """Run that many units, and nothing else: no memory is asked for, no call waits."""
    for _ in range(units):
        value = 1
        for step in range(_STEPS):
            value = (value * 31 + step) & 0xFFFF


def units_in(duration: float) -> int:
    """How many units take that many seconds of CPU time, in the median of many tries; at least one.

    Counted in CPU time, as other work of the machine takes none of that.
    """
    times = []
    for _ in range(_TRIES):
        began = time.thread_time()
        spin(_AT_ONCE)
        times.append((time.thread_time() - began) / _AT_ONCE)
    return max(1, round(duration / median(times)))


def spin_until(deadline: float, units: int = 20) -> int:
    """Units done until `time.monotonic()` has reached the deadline."""
    done = 0
    while time.monotonic() < deadline:
        spin(units)
        done += units
    return done
