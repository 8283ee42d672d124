"""What pods would like to use: a model of daily load, for all pods at once.

Latency-sensitive work follows a daily wave with noise that lasts; best-effort work takes what it
requested whenever it may. The shape is the one published for online services: about a tenth of what
is requested at night and three to five tenths at the peak, deviations that correlate by 0.58 over
five minutes (Alibaba cluster traces 2018).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from koordpolicy.simulator.chance import Chance
from koordpolicy.simulator.workload import EAGER, SERVICE, Wave

CORRELATION = 0.58
CORRELATION_STEP = 300.0
"""Seconds over which deviations correlate by `CORRELATION`."""

_PER_SLOT = ("_request", "_base", "_peak", "_peak_hour", "_deviation", "_noise")


@dataclass(frozen=True, slots=True)
class UsageShape:
    """How pods use what they request, and what nodes use themselves, as shares.

    `service` is the wave of pods about which nothing else is said, `best_effort` that of pods of the class
    BE. `deviation` is the noise of a wave, `spread` how far the peaks of pods lie apart (hours). `memory` is
    the share of its memory request that a pod uses; `system_cpu` and `system_memory` are shares of the node
    that work outside pods uses.
    """

    service: Wave = SERVICE
    best_effort: Wave = EAGER
    deviation: float = 0.06
    spread: float = 1.0
    memory: float = 0.6
    system_cpu: float = 0.02
    system_memory: float = 0.03


SHAPE = UsageShape()
"""The shape that simulations have unless told otherwise."""


class Population:
    """The running pods' wishes, as arrays that grow; a slot is one pod.

    `wishes(now)` gives millicores for every slot. Slots of pods that are gone wish nothing and are
    used again. `chance` is the only source of chance, so equal seeds give equal days.
    """

    def __init__(self, shape: UsageShape, chance: Chance) -> None:
        self.shape = shape
        self._chance = chance
        self._size = 0
        self._free: list[int] = []
        self._request = np.zeros(256)
        self._base = np.zeros(256)
        self._peak = np.zeros(256)
        self._peak_hour = np.zeros(256)
        self._deviation = np.zeros(256)
        self._noise = np.zeros(256)
        self._updated = 0.0

    def add(self, request: float, wave: Wave) -> int:
        """A pod that requests so many millicores; its slot."""
        slot = self._free.pop() if self._free else self._grow()
        deviation = 0.0 if wave.level else self.shape.deviation
        self._request[slot] = request
        self._base[slot], self._peak[slot] = wave.base, wave.peak
        self._peak_hour[slot] = wave.peak_hour + self._chance.normal(0.0, self.shape.spread)
        self._deviation[slot] = deviation
        self._noise[slot] = self._chance.normal(0.0, 1.0) * deviation
        return slot

    def remove(self, slot: int) -> None:
        """The pod is gone."""
        self._request[slot] = 0.0
        self._free.append(slot)

    def wishes(self, now: float) -> NDArray[np.float64]:
        """Millicores that each slot would use now, `now` in seconds; moves the noise forward."""
        used = slice(0, self._size)
        keep = CORRELATION ** (max(now - self._updated, 0.0) / CORRELATION_STEP)
        fresh = self._chance.normal(0.0, 1.0, self._size) * self._deviation[used]
        self._noise[used] = keep * self._noise[used] + np.sqrt(1.0 - keep * keep) * fresh
        self._updated = now
        turn = 2.0 * np.pi * (now / 3600.0 - self._peak_hour[used]) / 24.0
        height = 0.5 + 0.5 * np.cos(turn)
        share = self._base[used] + (self._peak[used] - self._base[used]) * height + self._noise[used]
        return np.asarray(self._request[used] * np.clip(share, 0.0, 1.0), dtype=np.float64)

    def _grow(self) -> int:
        slot = self._size
        self._size += 1
        if self._size > len(self._request):
            for name in _PER_SLOT:
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        return slot
