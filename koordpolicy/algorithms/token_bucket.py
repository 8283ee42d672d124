"""How often something may be done: so many times a second, and some more after a rest."""

from dataclasses import dataclass


@dataclass(slots=True)
class TokenBucket:
    """A bucket that fills as time passes; who takes from it waits for what is not in it yet.

    It is full at first. Time is in seconds, and may stand or go back.
    """

    _tokens: float = float("inf")
    _at: float = 0.0

    def take(self, now: float, rate: float, burst: float) -> float:
        """Take one of `rate` tokens a second, of which `burst` fit in: the seconds until it is there."""
        filled = max(now - self._at, 0.0) * rate
        self._tokens = min(self._tokens + filled, burst) - 1
        self._at = now
        return max(-self._tokens / rate, 0.0)
