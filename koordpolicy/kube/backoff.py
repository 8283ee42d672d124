"""How to wait after failures, by numbers that others provide."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """How to wait after failures: `initial` seconds, then `factor` times longer each, up to `longest`.

    Each wait is lengthened by up to `spread` of itself, so that many clients do not return at once;
    `jitter` gives numbers in [0, 1) for that. `sleep` waits for seconds, or less, and then gives True: something has
    changed, and who waited begins anew.
    """

    jitter: Callable[[], float]
    sleep: Callable[[float], Awaitable[bool | None]] = asyncio.sleep
    initial: float = 0.8
    factor: float = 2.0
    longest: float = 30.0
    spread: float = 1.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row, counted from 1."""
        steps = min(max(failures, 1) - 1, 64)  # beyond, the power could overflow without changing anything
        return min(self.longest, self.initial * self.factor**steps) * (1.0 + self.spread * self.jitter())
