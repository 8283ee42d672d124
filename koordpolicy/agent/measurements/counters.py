"""Rates of what the kernel only counts."""

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

CounterKey = TypeVar("CounterKey", bound=Hashable)

_FORGOTTEN: Final = 20
"""Intervals after which a count is too old to tell a rate by."""


class RateMeter(Generic[CounterKey]):
    """The last count of each subject. Times are nanoseconds of a monotonic clock."""

    def __init__(self) -> None:
        self._last: dict[CounterKey, tuple[int, float]] = {}

    def rate(self, subject: CounterKey, now: int, count: float, interval: int) -> float | None:
        """How much was counted each nanosecond since the last time.

        None the first time, after more than 20 intervals, and where the counter has begun anew.
        """
        before = self._last.get(subject)
        self._last[subject] = (now, count)
        if before is None:
            return None
        elapsed, counted = now - before[0], count - before[1]
        if not 0 < elapsed <= _FORGOTTEN * interval or counted < 0:
            return None
        return counted / elapsed

    def keep(self, subjects: Iterable[CounterKey]) -> None:
        """Forget all others: they have ended."""
        kept = set(subjects)
        for gone in self._last.keys() - kept:
            del self._last[gone]
