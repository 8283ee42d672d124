"""Gangs for which others hold back, so that room for all of one gathers."""

from collections.abc import Callable
from typing import Final

from koordpolicy.algorithms.gang import Gang
from koordpolicy.algorithms.gang_book import GangBook
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.plugins.gang.policy import GangDecisions

_OFTEN: Final = NANOSECONDS
"""How long it holds what was found out, in nanoseconds: all gangs are looked at for it."""


class Starving:
    """Found out anew once a second at most, and not at all where policy has nobody hold back."""

    def __init__(self, book: GangBook, decisions: GangDecisions, now: Callable[[], int]) -> None:
        self._book = book
        self._decisions = decisions
        self._now = now
        self._at: int | None = None
        self._found: list[tuple[int, Gang, int]] = []

    def before(self, gang: Gang, priority: int) -> str | None:
        """The id of the gang that one of this priority holds back for; None for none."""
        if not self._decisions.policy.some_starve:
            return None
        now = self._now()
        if self._at is None or not 0 <= now - self._at < _OFTEN:
            self._at, self._found = now, self._look()
        for _, other, theirs in self._found:
            if other.pending and theirs >= priority:
                same = self._book.group_of(other) is self._book.group_of(gang)
                return None if same else other.id
        return None

    def _look(self) -> list[tuple[int, Gang, int]]:
        """Those that starve, with their priority: the one that waits longest first."""
        found = []
        for gang in self._book.gangs.values():
            if gang.pending and gang.parameters is not None:
                group = self._book.group_of(gang)
                if group.complete_since is not None and self._decisions.starves(gang, group):
                    found.append((group.complete_since, gang, self._decisions.priority(gang)))
        return sorted(found, key=lambda one: (one[0], one[1].id))
