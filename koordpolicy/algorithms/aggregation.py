"""What many measurements of one thing come to: averages and percentiles, as Koordinator's agent counts them."""

import math
import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Final

SHARES: Final[Mapping[str, float]] = MappingProxyType({"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99})
"""Percentiles by name."""

AVERAGE: Final = "avg"
_SINGLE: Final = struct.Struct("f")


def average(values: Sequence[float]) -> float:
    """The mean. ValueError for no values, here and below."""
    # One after the other: the sum of Koordinator's agent, to the last digit.
    *_, whole = accumulate(values)
    return whole / len(values)


def percentile(values: Sequence[float], share: float) -> float:
    """The value at a share.

    Of n values in ascending order it is the one at trunc(n x share) - 1, counted from 0 and in single precision, at least
    the least.
    """
    place = math.trunc(_single(len(values) * _single(share))) - 1
    return sorted(values)[max(place, 0)]


def aggregate(values: Sequence[float], name: str) -> float:
    """The average (`avg`) or a percentile (`p50`, ...). KeyError for other names."""
    return average(values) if name == AVERAGE else percentile(values, SHARES[name])


def _single(number: float) -> float:
    """The nearest number of single precision."""
    found: float = _SINGLE.unpack(_SINGLE.pack(number))[0]
    return found


def begins_cold(span: int, duration: int) -> bool:
    """Whether measurements span less than half of a duration: too few to tell of it."""
    return 2 * span < duration


def millicores(cores: float) -> int:
    """Cores as millicores, the rest cut off."""
    return int(cores * 1000)
