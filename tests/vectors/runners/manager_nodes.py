"""Runners of the manager's node resources beyond batch and mid, and of histograms."""

from collections.abc import Iterator, Mapping
from typing import Any

from koordpolicy.algorithms.histogram import Buckets, ExponentialBuckets, Histogram, LinearBuckets
from koordpolicy.model.time import NANOSECONDS
from tests.vectors.compare import EXACT, Comparison
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def histogram(given: Given) -> Given:
    half_life = given.get("half_life_seconds")
    found = Histogram(
        _buckets(given["options"]),
        given["epsilon"],
        None if half_life is None else half_life * NANOSECONDS,
    )
    for sample in given["samples"]:
        act = found.subtract if sample.get("op") == "subtract" else found.add
        act(sample["value"], sample["weight"], sample.get("t_seconds", 0) * NANOSECONDS)
    return {
        "buckets": found.buckets.count,
        "percentiles": _Percentiles(found),
        "checkpoint_bucket_weights": {
            str(bucket): weight for bucket, weight in found.checkpoint().weights.items()
        },
    }


def _buckets(options: Given) -> Buckets:
    if options["type"] == "linear":
        return LinearBuckets(options["max"], options["bucket_size"])
    return ExponentialBuckets(options["first_bucket"], options["ratio"], options["max"])


class _Percentiles(Mapping[str, float]):
    """All that there are: which of them are looked at, the vector says."""

    def __init__(self, of: Histogram) -> None:
        self._of = of

    def __getitem__(self, share: str) -> float:
        return self._of.percentile(float(share))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Histograms(Comparison):
    """Files write the numbers of buckets as numbers or as text; not every vector looks at a checkpoint."""

    def difference(self, expected: object, found: object, at: str = "") -> str | None:
        if at == "checkpoint_bucket_weights" and isinstance(expected, Mapping):
            return EXACT.difference({str(bucket): weight for bucket, weight in expected.items()}, found, at)
        return super().difference(expected, found, at)


RUNNERS: Mapping[str, Runner] = {
    "histogram": Runner(histogram, _Histograms(relative=1e-9, only_expected=True)),
}
