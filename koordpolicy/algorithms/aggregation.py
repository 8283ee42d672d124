"""What many measurements of one thing come to: averages and percentiles, as Koordinator's agent counts them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHARES: Final[Mapping[str, float]] = MappingProxyType({"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99})
"""Percentiles by name."""

AVERAGE: Final = "avg"


def counts(values: Floats) -> NDArray[np.int64]:
    """How many measurements each row has; NaN is none. Rows are subjects, columns moments, here and below."""
    numbers: NDArray[np.int64] = np.count_nonzero(~np.isnan(values), axis=1)
    return numbers


def averages(values: Floats) -> Floats:
    """The mean of each row; NaN where there is no measurement."""
    if not values.size:
        return np.full(len(values), np.nan)
    # One after the other: the sum of Koordinator's agent, to the last digit.
    sums = np.nancumsum(values, axis=1)[:, -1]
    numbers = counts(values)
    means: Floats = np.divide(sums, numbers, out=np.full(len(values), np.nan), where=numbers > 0)
    return means


def percentiles(values: Floats, share: float) -> Floats:
    """The value at a share of each row; NaN where there is no measurement.

    Of n values in ascending order it is the one at trunc(n x share) - 1, counted from 0 and in single precision, at least
    the least.
    """
    if not values.size:
        return np.full(len(values), np.nan)
    ordered = np.sort(values, axis=1)  # NaN goes last
    places = (counts(values).astype(np.float32) * np.float32(share)).astype(np.int64) - 1
    return ordered[np.arange(len(values)), np.maximum(places, 0)]


def aggregate(values: Floats, name: str) -> Floats:
    """The average (`avg`) or a percentile (`p50`, ...) of each row. KeyError for other names."""
    return averages(values) if name == AVERAGE else percentiles(values, SHARES[name])


def latest(values: Floats) -> Floats:
    """The last measurement of each row; NaN where there is none."""
    if not values.size:
        return np.full(len(values), np.nan)
    found = ~np.isnan(values)
    places = values.shape[1] - 1 - np.argmax(found[:, ::-1], axis=1)
    last: Floats = values[np.arange(len(values)), places]
    return last


def spans(values: Floats, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The time from the first to the last measurement of each row, in the unit of `times`; 0 where there is none."""
    if not values.size:
        return np.zeros(len(values), np.int64)
    found = ~np.isnan(values)
    first = np.argmax(found, axis=1)
    last = values.shape[1] - 1 - np.argmax(found[:, ::-1], axis=1)
    span: NDArray[np.int64] = np.where(found.any(axis=1), times[last] - times[first], 0)
    return span


def begins_cold(span: int, duration: int) -> bool:
    """Whether measurements span less than half of a duration: too few to tell of it."""
    return 2 * span < duration


def millicores(cores: float) -> int:
    """Cores as millicores, the rest cut off."""
    return int(cores * 1000)
