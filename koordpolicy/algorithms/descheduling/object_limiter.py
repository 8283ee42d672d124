"""How often pods of one object may go: of one workload, of one namespace."""

from dataclasses import dataclass, field
from typing import Final

_KEPT: Final = 1.5
"""After so many of its periods without an eviction nothing of an object is kept."""


@dataclass(slots=True)
class _Bucket:
    """The evictions that are left, as they were at the last one."""

    left: float
    last_at: float

    def left_at(self, now: float, most: int, period: float, burst: int) -> float:
        return min(burst, self.left + max(now - self.last_at, 0.0) * most / period)


@dataclass(slots=True)
class ObjectLimiter:
    """Evictions by object, such as a workload's UID. Times are seconds, never going back.

    `period`: in which an object may lose as many pods as `evicted` says; 0 limits nothing. `burst`: how many may go at once.
    """

    period: float
    burst: int = 1
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    def limits(self, key: str, most: int, now: float) -> bool:
        """Whether the object has lost as many pods as it may for now, of `most` in a period."""
        bucket = self._known(key, now)
        if bucket is None or most <= 0 or self.period <= 0:
            return False
        return bucket.left_at(now, most, self.period, self._burst) < 1

    def evicted(self, key: str, most: int, now: float) -> None:
        """A pod of the object went. `most`: the pods that may go in a period, 0 to count nothing."""
        if self.period <= 0 or most <= 0:
            return
        known = self._known(key, now)
        left = float(self._burst) if known is None else known.left_at(now, most, self.period, self._burst)
        # One that went although none was left takes nothing more.
        self._buckets[key] = _Bucket(left - 1 if left >= 1 else left, now)

    @property
    def _burst(self) -> int:
        return max(self.burst, 1)

    def _known(self, key: str, now: float) -> _Bucket | None:
        """What is kept of an object; nothing of any whose last eviction is long ago."""
        gone = [name for name, one in self._buckets.items() if now - one.last_at > _KEPT * self.period]
        for name in gone:
            del self._buckets[name]
        return self._buckets.get(key)
