"""What samples of one measurement say together: over a window that ends now, both ends included.

A sample is a time and a value; times are of any one unit. Percentiles are those of Koordinator's metric cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

Samples = Sequence[tuple[float, float]]

PERCENTILES: Final = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Window:
    """The samples of a window, the earliest first, and how long it was meant to be."""

    samples: Samples
    duration: float

    @property
    def observed(self) -> float:
        """Time between the first sample and the last one."""
        return self.samples[-1][0] - self.samples[0][0] if self.samples else 0.0

    def warm(self, share: float) -> bool:
        """Whether at least a share of the window was observed."""
        return self.observed >= share * self.duration

    @property
    def average(self) -> float:
        """The mean of all values. Raises ValueError without any."""
        return sum(self._values()) / len(self.samples)

    @property
    def last(self) -> float:
        """The value of the latest sample. Raises ValueError without any."""
        return self._values()[-1]

    def percentile(self, share: float) -> float:
        """The value below which about that share of all lies. Raises ValueError without any."""
        ordered = sorted(self._values())
        # Koordinator multiplies in single precision, and cuts off.
        at = int(np.float32(len(ordered)) * np.float32(share)) - 1
        return ordered[max(at, 0)]

    def _values(self) -> list[float]:
        if not self.samples:
            raise ValueError("a window without samples says nothing")
        return [value for _at, value in self.samples]


def window(samples: Samples, duration: float, now: float) -> Window:
    """The samples of the last `duration` before now."""
    inside = sorted(sample for sample in samples if now - duration <= sample[0] <= now)
    return Window(inside, duration)
