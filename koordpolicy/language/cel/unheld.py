"""Conditions that could not be evaluated, counted by where they stand.

A rule whose condition fails does not apply (see `ir.Holds`), and whoever asks gets an answer: that it came about in this
way is told here, by the process for its log and metrics, and by commands for their reports.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

_MOST: Final = 1_000
"""Places that are remembered; of more, those that were seen longest ago are forgotten."""


@dataclass(slots=True)
class Unheld:
    """How often a condition failed, and of what last; "" where only the number is known."""

    count: int = 0
    error: str = ""


class UnheldConditions:
    """What was counted since the beginning, by `FILE:LINE:COLUMN`."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, Unheld] = OrderedDict()
        self._lock = Lock()
        self.count = 0
        """How many failures there were at all."""

    def add(self, clause: str, count: int = 1, error: str = "") -> None:
        """A condition failed so often."""
        with self._lock:
            self.count += count
            found = self._found.get(clause)
            if found is None:
                found = self._found[clause] = Unheld()
                if len(self._found) > _MOST:
                    self._found.popitem(last=False)
            found.count += count
            found.error = error or found.error

    def seen(self) -> Mapping[str, Unheld]:
        """A copy of what was counted."""
        with self._lock:
            return {clause: Unheld(one.count, one.error) for clause, one in self._found.items()}

    def since(self, before: Mapping[str, Unheld]) -> dict[str, Unheld]:
        """What was counted since `seen` gave this."""
        found = {}
        for clause, one in self.seen().items():
            count = one.count - (before[clause].count if clause in before else 0)
            if count > 0:
                found[clause] = Unheld(count, one.error)
        return found


SEEN: Final = UnheldConditions()
"""What this process has met."""
