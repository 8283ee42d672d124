"""The clock of a real process. Everything else is given one."""

import time


def now_ns() -> int:
    """Nanoseconds since 1970, by the clock on the wall."""
    return time.time_ns()


def monotonic() -> float:
    """Seconds that never run backwards, for spans."""
    return time.monotonic()
