"""Virtual time: an agenda of what happens when."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

Action = Callable[[], None]

SECOND = 1_000_000_000
"""Nanoseconds."""

LONGEST = 80 * 365 * 86_400 * SECOND
"""What a workload may say of a time or a duration: sums of a few of them stay below 2**63 nanoseconds, whenever a day begins."""


@dataclass(slots=True)
class Agenda:
    """Actions in order of time, and within one instant in order of entry.

    `now` is in nanoseconds since 1970 and moves only when an action is taken.
    """

    now: int = 0
    _waiting: list[tuple[int, int, Action]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=count)

    @property
    def seconds(self) -> float:
        """The time as the in-memory cluster asks for it."""
        return self.now / SECOND

    def at(self, time: int, action: Action) -> None:
        """Enter an action; one that lies in the past is due now."""
        heapq.heappush(self._waiting, (max(time, self.now), next(self._order), action))

    def every(self, interval: int, until: int, action: Action) -> None:
        """Enter an action that repeats, first after one interval, last at or before `until`."""

        def again() -> None:
            action()
            if self.now + interval <= until:
                self.at(self.now + interval, again)

        if self.now + interval <= until:
            self.at(self.now + interval, again)

    def run(self, until: int) -> int:
        """Take actions up to and including `until`, which then is now; gives how many there were."""
        taken = 0
        while self._waiting and self._waiting[0][0] <= until:
            self.now, _, action = heapq.heappop(self._waiting)
            action()
            taken += 1
        self.now = max(self.now, until)
        return taken
