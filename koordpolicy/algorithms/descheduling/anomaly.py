"""Whether a node is over its thresholds for long enough to be relieved, so that a node that flaps moves nothing.

The algorithm is Koordinator's detector of LowNodeLoad: more than so many marks of "over" in a row make an anomaly, which
ends by more than so many marks of "normal", by a reset, or by its own time.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AnomalyCondition:
    """When a node counts as abnormal.

    An anomaly begins with mark number `consecutive_abnormalities` + 1 and ends with normal mark number
    `consecutive_normalities` + 1, or `timeout` seconds after it began. `forgotten_after`: the seconds after the last mark of
    "over" when a node's counts are dropped. All are above 0.
    """

    consecutive_abnormalities: int
    consecutive_normalities: int
    timeout: float
    forgotten_after: float


@dataclass(slots=True)
class Detector:
    """The counts of one node under one condition."""

    condition: AnomalyCondition
    abnormal: bool = False
    abnormalities: int = 0
    normalities: int = 0
    ends_at: float = 0.0
    forgotten_at: float = 0.0

    def mark_over(self, now: float) -> bool:
        """The node is over a threshold: whether that is an anomaly by now."""
        self._refresh(now)
        self.abnormalities += 1
        self.normalities = 0
        if not self.abnormal and self.abnormalities > self.condition.consecutive_abnormalities:
            self._turn(abnormal=True)
            self.ends_at = now + self.condition.timeout
        self.forgotten_at = now + self.condition.forgotten_after
        return self.abnormal

    def mark_normal(self, now: float) -> bool:
        """The node was relieved for this cycle: whether it is an anomaly still."""
        self._refresh(now)
        self.normalities += 1
        self.abnormalities = 0
        if self.abnormal and self.normalities > self.condition.consecutive_normalities:
            self._turn(abnormal=False)
        return self.abnormal

    def reset(self) -> None:
        """End an anomaly. The counts of a node that has none stay, as in Koordinator."""
        if self.abnormal:
            self._turn(abnormal=False)

    def _refresh(self, now: float) -> None:
        if self.abnormal and self.ends_at < now:
            self._turn(abnormal=False)

    def _turn(self, *, abnormal: bool) -> None:
        self.abnormal = abnormal
        self.abnormalities = self.normalities = 0


@dataclass(slots=True)
class Detectors:
    """The detectors of all nodes that were over a threshold lately. A detector keeps the condition that it began with."""

    _of: dict[str, Detector] = field(default_factory=dict)

    def mark_over(self, node: str, condition: AnomalyCondition | None, now: float) -> bool:
        """A node is over a threshold: whether it is to be relieved.

        It is at once, and nothing is kept, without a condition or with one abnormality asked for.
        """
        if condition is None or condition.consecutive_abnormalities == 1:
            return True
        self.forget(now)
        return self._of.setdefault(node, Detector(condition)).mark_over(now)

    def mark_normal(self, node: str, now: float) -> bool:
        """A node was relieved for this cycle: whether it is an anomaly still."""
        found = self.get(node, now)
        return found is not None and found.mark_normal(now)

    def reset(self, node: str, now: float) -> bool:
        """A node is no longer over: whether anything was known of it."""
        found = self.get(node, now)
        if found is not None:
            found.reset()
        return found is not None

    def drop(self, node: str) -> None:
        """A node is as it should be: what was counted of it counts no more."""
        self._of.pop(node, None)

    def get(self, node: str, now: float) -> Detector | None:
        """The detector of a node, None when there is none or its time is over."""
        found = self._of.get(node)
        return found if found is not None and now <= found.forgotten_at else None

    def forget(self, now: float) -> None:
        """Drop what was not marked for too long."""
        for node in [node for node, one in self._of.items() if one.forgotten_at < now]:
            del self._of[node]
