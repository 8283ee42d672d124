"""The clock of a real process. Everything else is given one."""

import time


def now_ns() -> int:
    """Nanoseconds since 1970, by the clock on the wall."""
    return time.time_ns()


def monotonic() -> float:
    """Seconds that never run backwards, for spans."""
    return time.monotonic()


def monotonic_ns() -> int:
    """The same in nanoseconds, as fine as there is."""
    return time.perf_counter_ns()


def processor_ns() -> int:
    """Nanoseconds that a processor has worked for the thread that asks, whatever else the machine does."""
    return time.thread_time_ns()
