"""Hysteresis: a state that turns only once what speaks for the other one has held for some time without a break."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Standing:
    """How a thing counts, and `since` when the opposite has held, None while it does not.

    Times are nanoseconds of a clock that nobody sets.
    """

    abnormal: bool = False
    since: int | None = None

    def after(self, holds: bool, now: int, needed: int, needed_back: int) -> "Standing":
        """How it counts at a moment at which the abnormal state `holds` or not.

        It turns abnormal after `needed` nanoseconds of holding, and back after `needed_back` of not holding.
        """
        if holds == self.abnormal:
            return Standing(self.abnormal)
        since = now if self.since is None else self.since
        wait = needed_back if self.abnormal else needed
        return Standing(holds) if now - since >= wait else Standing(self.abnormal, since)

    def turns_in(self, now: int, needed: int, needed_back: int) -> int | None:
        """Nanoseconds until it turns if nothing else happens; None where it is as it should be."""
        if self.since is None:
            return None
        return max(self.since + (needed_back if self.abnormal else needed) - now, 0)


WELL: Final = Standing()
