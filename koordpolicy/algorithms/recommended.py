"""What is recommended of a resource, by a histogram of what was used.

Histograms count CPU in cores and memory in bytes; what is recommended is millicores and bytes, as elsewhere. The steps are
those of Koordinator's peak prediction on nodes: a percentile, a margin on top, cut off to a whole amount.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from koordpolicy.algorithms.histogram import ExponentialBuckets, Histogram

EPSILON: Final = 0.0001
"""What a bucket weighs at least that is not empty, as in Koordinator's histograms."""
MOST_BUCKETS: Final = 2_000
"""Each is 8 bytes of every container."""
MILLI: Final = 1_000
"""Millicores of a core."""


class LayoutError(ValueError):
    """There are no such buckets. The message says why."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Buckets of which the first is of size `first` and each next one larger by the share `growth`, up to `most`.

    A sample counts half after `half_life` nanoseconds.
    """

    first: float
    growth: float
    most: float
    half_life: int

    def histogram(self) -> Histogram:
        """One without samples. Raises LayoutError."""
        return Histogram(_buckets(self.first, 1 + self.growth, self.most), EPSILON, self.half_life)

    def check(self) -> None:
        """Raises LayoutError for buckets that cannot be."""
        _buckets(self.first, 1 + self.growth, self.most)
        if self.half_life < 10**9:
            raise LayoutError("a half-life of less than a second keeps nothing")


@lru_cache(maxsize=256)
def _buckets(first: float, ratio: float, most: float) -> ExponentialBuckets:
    """The same for all containers of one layout."""
    if not 0 < first < most:
        raise LayoutError("the first bucket has to be larger than 0 and smaller than the largest amount")
    if not ratio > 1:
        raise LayoutError("each bucket has to be larger than the one before")
    # Asked by logarithms of each number: their quotient may be beyond what a double can say.
    about = (math.log(most) - math.log(first) + math.log(ratio - 1)) / math.log(ratio)
    if about > MOST_BUCKETS:
        raise LayoutError(f"these are more than {MOST_BUCKETS:,} buckets: let them grow faster")
    return ExponentialBuckets(first, ratio, most)


def rearranged(histogram: Histogram, layout: Layout) -> Histogram:
    """The same weights in other buckets, each where its middle lies. Raises LayoutError.

    With another half-life only what comes later fades otherwise.
    """
    made = layout.histogram()
    buckets = histogram.buckets
    made.reference = histogram.reference
    for bucket, weight in enumerate(histogram.weights):
        if weight >= histogram.epsilon:
            middle = (buckets.start(bucket) + buckets.start(bucket + 1)) / 2
            made.add(middle, weight, histogram.reference)
    return made


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of use is recommended: percentiles and margin as shares (0.95 and 0.1), bounds as whole amounts.

    `maximum` is None for no limit.
    """

    lower: float
    target: float
    upper: float
    margin: float
    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Recommended:
    """Amounts: below `lower` a request is too small, above `upper` too large, `target` is what it should be."""

    lower: int
    target: int
    upper: int


def recommended(histogram: Histogram, wanted: Wanted, scale: int = 1) -> Recommended | None:
    """What is recommended, `scale` amounts for each unit of the histogram; None without any sample."""
    if histogram.empty:
        return None

    def amount(share: float) -> int:
        found = int(histogram.percentile(share) * scale * (1 + wanted.margin))
        most = found if wanted.maximum is None else min(found, wanted.maximum)
        return max(most, wanted.minimum)

    target = amount(wanted.target)
    return Recommended(min(amount(wanted.lower), target), target, max(amount(wanted.upper), target))


def differs(old: int, new: int, share: float) -> bool:
    """Whether an amount changed by more than a share of what it was."""
    return abs(new - old) > share * old
