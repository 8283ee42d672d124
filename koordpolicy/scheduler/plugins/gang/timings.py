"""How long rounds of gangs took, and searches for room, until somebody takes that up."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from koordpolicy.model.time import NANOSECONDS

SUCCEEDED: Final = "gang is already succeed"
ATTEMPTED: Final = "all pending pods is already been attempted"
GONE: Final = "gang is nil, may be already deleted"
"""How a round ends, as koord-scheduler's metric says it."""

_KEPT: Final = 10_000
"""Of each, so many are kept at most; nobody takes them up in a simulation."""


class Ended(NamedTuple):
    """Something that took so long, of so many pods, with what came of it."""

    seconds: float
    result: str
    pods: int


class GangTimings:
    """Those of one scheduler. `now` gives nanoseconds since 1970."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._began: tuple[int, int] | None = None
        self.count = 0
        """Rounds that have begun."""
        self._placed: deque[int] = deque(maxlen=_KEPT)
        self._rounds: deque[Ended] = deque(maxlen=_KEPT)
        self._searches: deque[Ended] = deque(maxlen=_KEPT)

    def begin(self, pods: int) -> None:
        """A round of so many pods begins."""
        self._began = self._now(), pods
        self.count += 1

    def placed(self, rounds: int) -> None:
        """A gang group is placed in its so many-th round in a row."""
        self._placed.append(rounds)

    def rounds_until_placed(self) -> Iterator[int]:
        """In how many rounds gang groups were placed, of which nobody has heard yet."""
        while self._placed:
            yield self._placed.popleft()

    def end(self, how: str) -> None:
        """It ends, if one has begun."""
        if self._began is not None:
            at, pods = self._began
            self._rounds.append(Ended(max(0, self._now() - at) / NANOSECONDS, how, pods))
            self._began = None

    def searched(self, since: int, pods: int, *, found: bool) -> None:
        """Room was looked for since then."""
        result = "success" if found else "failure"
        self._searches.append(Ended(max(0, self._now() - since) / NANOSECONDS, result, pods))

    def rounds(self) -> Iterator[Ended]:
        """The rounds that nobody has taken up yet, which are taken up."""
        while self._rounds:
            yield self._rounds.popleft()

    def searches(self) -> Iterator[Ended]:
        """The same of searches."""
        while self._searches:
            yield self._searches.popleft()
