"""What pods would like to use: a model of daily load, for all pods at once.

Latency-sensitive work follows a daily wave with noise that lasts; best-effort work takes what it
requested whenever it may. The shape is the one published for online services: about a tenth of what
is requested at night and three to five tenths at the peak, deviations that correlate by 0.58 over
five minutes (Alibaba cluster traces 2018).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DAY = 86_400.0
CORRELATION = 0.58
CORRELATION_STEP = 300.0
"""Seconds over which deviations correlate by `CORRELATION`."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A daily wave of CPU use as a share of the request, `peak_hour` in hours after the start of the day."""

    base: float = 0.08
    peak: float = 0.40
    peak_hour: float = 14.0
    deviation: float = 0.06
    memory: float = 0.6
    best_effort: float = 0.95

    def at(self, seconds: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """The mean share at a time of day; arrays of times give arrays."""
        hours = np.asarray(seconds, dtype=np.float64) / 3600.0
        wave = 0.5 + 0.5 * np.cos(2.0 * np.pi * (hours - self.peak_hour) / 24.0)
        return np.asarray(self.base + (self.peak - self.base) * wave, dtype=np.float64)


class Population:
    """The running pods' wishes, as arrays that grow; a slot is one pod.

    `wishes(now)` gives millicores for every slot. Slots of pods that are gone wish nothing and are
    used again. `random` is the only source of chance, so equal seeds give equal days.
    """

    def __init__(self, shape: Shape, random: np.random.Generator) -> None:
        self.shape = shape
        self._random = random
        self._size = 0
        self._free: list[int] = []
        self._request = np.zeros(256)
        self._fixed = np.zeros(256)
        self._phase = np.zeros(256)
        self._noise = np.zeros(256)
        self._updated = 0.0

    def add(self, request: float, fixed: float | None) -> int:
        """A pod with a CPU request in millicores; with `fixed` it uses that share of it all day."""
        slot = self._free.pop() if self._free else self._grow()
        self._request[slot] = request
        self._fixed[slot] = np.nan if fixed is None else fixed
        self._phase[slot] = self._random.normal(0.0, 3600.0)
        self._noise[slot] = self._random.normal(0.0, self.shape.deviation)
        return slot

    def remove(self, slot: int) -> None:
        """The pod is gone."""
        self._request[slot] = 0.0
        self._free.append(slot)

    def wishes(self, now: float) -> NDArray[np.float64]:
        """Millicores that each slot would use now, `now` in seconds; moves the noise forward."""
        used = slice(0, self._size)
        keep = CORRELATION ** (max(now - self._updated, 0.0) / CORRELATION_STEP)
        fresh = self._random.normal(0.0, self.shape.deviation * np.sqrt(1.0 - keep * keep), self._size)
        self._noise[used] = keep * self._noise[used] + fresh
        self._updated = now
        daily = self.shape.at((now + self._phase[used]) % DAY) + self._noise[used]
        share = np.where(np.isnan(self._fixed[used]), daily, self._fixed[used])
        return np.asarray(self._request[used] * np.clip(share, 0.0, 1.0), dtype=np.float64)

    def _grow(self) -> int:
        slot = self._size
        self._size += 1
        if self._size > len(self._request):
            for name in ("_request", "_fixed", "_phase", "_noise"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        return slot
