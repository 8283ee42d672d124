"""Histograms: what fades, what merges, what a checkpoint keeps. The reference's own answers are among the vectors."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.histogram import (
    Checkpoint,
    CheckpointError,
    ExponentialBuckets,
    Histogram,
    LinearBuckets,
)

HOUR = 3_600 * 10**9
NOW = 1_800_000_000 * 10**9
CPU = ExponentialBuckets(0.025, 1.05, 1024.0)

SAMPLES = st.lists(st.tuples(st.floats(0, 2000), st.integers(0, 400)), min_size=1, max_size=30)


def filled(samples: list[tuple[float, int]], half_life: int | None = 12 * HOUR) -> Histogram:
    histogram = Histogram(CPU, 0.0001, half_life)
    for value, hours in samples:
        histogram.add(value, 1.0, NOW + hours * HOUR)
    return histogram


@given(SAMPLES)
def test_a_percentile_lies_above_its_samples_by_one_bucket_at_most(samples: list[tuple[float, int]]) -> None:
    histogram = filled([(value, 0) for value, _ in samples])
    largest = max(value for value, _ in samples)
    found = histogram.percentile(1.0)
    assert found == CPU.start(min(CPU.find(largest) + 1, CPU.count - 1))
    assert found >= min(largest, CPU.start(CPU.count - 1))


@given(SAMPLES, SAMPLES)
def test_merged_as_if_it_had_seen_both(one: list[tuple[float, int]], other: list[tuple[float, int]]) -> None:
    merged = filled(one)
    merged.merge(filled(other))
    whole = filled(one + other)
    assert math.isclose(merged.percentile(0.9), whole.percentile(0.9)) or _near_a_border(whole, 0.9)


def _near_a_border(histogram: Histogram, share: float) -> bool:
    """Whether rounding may decide into which bucket a share falls."""
    return histogram.percentile(share - 1e-9) != histogram.percentile(share + 1e-9)


@given(SAMPLES)
def test_a_checkpoint_gives_the_same_back(samples: list[tuple[float, int]]) -> None:
    histogram = filled(samples)
    again = Histogram(CPU, 0.0001, 12 * HOUR)
    again.load(histogram.checkpoint())
    assert again.reference == histogram.reference
    assert math.isclose(again.total, histogram.total)
    close = {histogram.percentile(share) for share in (0.949, 0.95, 0.951)}
    assert again.percentile(0.95) in close


def test_old_samples_fade() -> None:
    histogram = Histogram(LinearBuckets(10, 1), 0.0001, HOUR)
    histogram.add(8, 1.0, NOW)
    assert histogram.percentile(0.5) == 9
    for _ in range(2):
        histogram.add(1, 1.0, NOW + 3 * HOUR)
    assert histogram.percentile(0.5) == 2
    assert histogram.percentile(1.0) == 9
    histogram.add(1, 1.0, NOW + 300 * HOUR)
    assert histogram.percentile(1.0) == 2, "nothing is left of what is that old"


def test_what_is_taken_back_is_gone() -> None:
    histogram = Histogram(LinearBuckets(10, 1), 0.0001)
    histogram.add(3, 1.0)
    histogram.add(7, 1.0)
    histogram.subtract(7, 1.0)
    assert histogram.percentile(1.0) == 4
    histogram.subtract(3, 1.0)
    assert histogram.empty
    assert histogram.percentile(1.0) == 0


@pytest.mark.parametrize(
    ("checkpoint", "why"),
    [
        (Checkpoint(-1.0, {1: 10_000}), "total weight of -1.0"),
        (Checkpoint(math.inf, {1: 10_000}), "total weight of inf"),
        (Checkpoint(1.0, {11: 10_000}), "no bucket 11 among 11"),
        (Checkpoint(1.0, {-1: 10_000}), "no bucket -1"),
        (Checkpoint(1.0, {1: 5, 2: -5}), "weight of -5"),
    ],
)
def test_a_bad_checkpoint_adds_nothing(checkpoint: Checkpoint, why: str) -> None:
    histogram = Histogram(LinearBuckets(10, 1), 0.0001)
    with pytest.raises(CheckpointError, match=why):
        histogram.load(checkpoint)
    assert histogram.empty
    assert histogram.total == 0


def test_only_equals_merge() -> None:
    one, other = Histogram(CPU, 0.0001), Histogram(replace(CPU, ratio=1.1), 0.0001)
    with pytest.raises(ValueError, match="equal buckets"):
        one.merge(other)
