"""Histograms of what was used: weights in buckets, which fade with time, and percentiles of them.

They take a fixed amount of memory however many samples they have seen. Times are nanoseconds since 1970.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

SECONDS_BEFORE_1970: Final = 62_135_596_800
"""From the first instant of year 1, from which multiples of a half-life are counted, to 1970."""
_YEAR_1: Final = -SECONDS_BEFORE_1970 * 10**9
_MOST_HALF_LIVES: Final = 100
"""A sample weighs 2 to the power of half-lives since the reference: beyond this, the reference moves."""
_FULL_WEIGHT: Final = 10_000
"""What the heaviest bucket weighs in a checkpoint."""


@dataclass(frozen=True)
class LinearBuckets:
    """Buckets of one `size`, up to `most`; the last takes all that is larger."""

    most: float
    size: float

    @cached_property
    def count(self) -> int:
        """How many buckets there are."""
        return math.ceil(self.most / self.size) + 1

    def find(self, value: float) -> int:
        """The bucket of a value."""
        return min(max(int(value / self.size), 0), self.count - 1)

    def start(self, bucket: int) -> float:
        """The least value of a bucket."""
        return bucket * self.size


@dataclass(frozen=True)
class ExponentialBuckets:
    """Buckets of which the first has size `first` and each next one `ratio` times the size of the one before."""

    first: float
    ratio: float
    most: float

    @cached_property
    def count(self) -> int:
        """How many buckets there are."""
        return math.ceil(self._place(self.most)) + 1

    def find(self, value: float) -> int:
        """The bucket of a value."""
        return 0 if value < self.first else min(int(self._place(value)), self.count - 1)

    def start(self, bucket: int) -> float:
        """The least value of a bucket."""
        return self.first * (self.ratio**bucket - 1) / (self.ratio - 1)

    def _place(self, value: float) -> float:
        return math.log(value * (self.ratio - 1) / self.first + 1) / math.log(self.ratio)


Buckets = LinearBuckets | ExponentialBuckets


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A histogram in few words: weights by bucket, at most 10,000, and what they sum up to; `reference` as in `Histogram`."""

    total: float
    weights: Mapping[int, int] = field(default_factory=dict)
    reference: int = _YEAR_1


class CheckpointError(ValueError):
    """A checkpoint is not one of such a histogram. The message says why."""


class Histogram:
    """Weights of samples by bucket.

    A bucket that weighs less than `epsilon` is empty. With a `half_life` in nanoseconds, samples of that much earlier
    count half; without one (None) they count for ever.
    """

    __slots__ = ("_high", "_low", "_weights", "buckets", "epsilon", "half_life", "reference", "total")

    def __init__(self, buckets: Buckets, epsilon: float, half_life: int | None = None) -> None:
        self.buckets = buckets
        self.epsilon = epsilon
        self.half_life = half_life
        self.reference = _YEAR_1
        self.total = 0.0
        self._weights = array("d", bytes(8 * buckets.count))
        self._low, self._high = buckets.count - 1, 0

    @property
    def empty(self) -> bool:
        """Whether no bucket weighs anything."""
        return self._weights[self._low] < self.epsilon

    @property
    def weights(self) -> Sequence[float]:
        """What each bucket weighs."""
        return self._weights

    def add(self, value: float, weight: float, at: int = 0) -> None:
        """Count a sample that was taken at that time."""
        weight *= self._growth(at)
        bucket = self.buckets.find(value)
        self._weights[bucket] += weight
        self.total += weight
        if self._weights[bucket] >= self.epsilon:
            self._low, self._high = min(self._low, bucket), max(self._high, bucket)

    def begin_at(self, at: int) -> None:
        """Let weights count from the multiple of the half-life that is nearest to a time. Only before the first sample."""
        if self.half_life is not None:
            self.reference = self._rounded(at, self.half_life)

    def subtract(self, value: float, weight: float, at: int = 0) -> None:
        """Take back a sample; what is left of less than `epsilon` is nothing."""
        weight *= self._growth(at)
        bucket = self.buckets.find(value)
        self.total = self._less(self.total, weight)
        self._weights[bucket] = self._less(self._weights[bucket], weight)
        self._bound()

    def percentile(self, share: float) -> float:
        """The end of the bucket below whose end that share (0 to 1) of all weight lies; 0 for an empty histogram.

        Where just that share lies below its end, rounding decides between it and the next bucket that is not empty.
        """
        if self.empty:
            return 0.0
        wanted, seen, bucket = share * self.total, 0.0, self._low
        while bucket < self._high:
            seen += self._weights[bucket]
            if seen >= wanted:
                break
            bucket += 1
        return self.buckets.start(min(bucket + 1, self.buckets.count - 1))

    def merge(self, other: "Histogram") -> None:
        """Add all that another histogram of the same buckets and half-life has seen; ValueError for one that differs."""
        if (self.buckets, self.epsilon, self.half_life) != (other.buckets, other.epsilon, other.half_life):
            raise ValueError("only histograms of equal buckets and half-life can be merged")
        if self.reference < other.reference:
            self._refer_to(other.reference)
        factor = self._fading(other.reference)
        for bucket, weight in enumerate(other.weights):
            self._weights[bucket] += weight * factor
        self.total += other.total * factor
        self._bound()

    # --- checkpoints ------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint:
        """What `load` makes the same histogram of, but for rounding."""
        if self.empty:
            return Checkpoint(self.total, {}, self.reference)
        scale = _FULL_WEIGHT / max(self._weights[self._low : self._high + 1])
        weights = {
            bucket: math.floor(self._weights[bucket] * scale + 0.5)
            for bucket in range(self._low, self._high + 1)
        }
        return Checkpoint(
            self.total, {bucket: weight for bucket, weight in weights.items() if weight > 0}, self.reference
        )

    def load(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint's weights; its reference becomes this histogram's. Raises CheckpointError; nothing is added then."""
        if not (checkpoint.total >= 0 and math.isfinite(checkpoint.total)):
            raise CheckpointError(f"a total weight of {checkpoint.total} is not possible")
        for bucket, weight in checkpoint.weights.items():
            if not 0 <= bucket < self.buckets.count:
                raise CheckpointError(f"there is no bucket {bucket} among {self.buckets.count}")
            if weight < 0:
                raise CheckpointError(f"a weight of {weight} is not possible")
        self.reference = checkpoint.reference
        listed = sum(checkpoint.weights.values())
        if listed == 0:
            return
        for bucket, weight in checkpoint.weights.items():
            self._weights[bucket] += weight * checkpoint.total / listed
        self.total += checkpoint.total
        self._bound()

    # --- time -------------------------------------------------------------------------------------

    def _growth(self, at: int) -> float:
        """How much more a sample of that time counts than one of the reference."""
        if self.half_life is None:
            return 1.0
        if at > self.reference + _MOST_HALF_LIVES * self.half_life:
            self._refer_to(self._rounded(at, self.half_life))
        return math.exp2(max((at - self.reference) / self.half_life, -1074.0))

    def _refer_to(self, reference: int) -> None:
        at, self.reference = self.reference, reference
        factor = self._fading(at)
        for bucket, weight in enumerate(self._weights):
            if weight:
                self._weights[bucket] = weight * factor
        self.total *= factor
        self._bound()

    def _fading(self, reference: int) -> float:
        """What a weight counts now that was counted by an earlier reference."""
        if self.half_life is None:
            return 1.0
        return math.ldexp(1.0, -_half_up(self.reference - reference, self.half_life))

    @staticmethod
    def _rounded(at: int, step: int) -> int:
        """The multiple of a step, counted from year 1, that is nearest to a time."""
        return _half_up(at - _YEAR_1, step) * step + _YEAR_1

    def _less(self, weight: float, taken: float) -> float:
        left = weight - taken
        return 0.0 if left < self.epsilon else left

    def _bound(self) -> None:
        """Find the first and the last bucket that are not empty, within those that were."""
        full = [bucket for bucket, weight in enumerate(self._weights) if weight >= self.epsilon]
        self._low, self._high = (full[0], full[-1]) if full else (self.buckets.count - 1, 0)


def _half_up(number: int, step: int) -> int:
    """How many steps a number is, rounded half up."""
    return (2 * number + step) // (2 * step)
