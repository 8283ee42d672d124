"""What is recommended of histograms: bounds, order, and buckets that change."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koordpolicy.algorithms.recommended import (
    MILLI,
    Layout,
    LayoutError,
    Wanted,
    differs,
    rearranged,
    recommended,
)

HOUR = 3_600 * 10**9
NOW = 1_800_000_000 * 10**9
CPU = Layout(0.025, 0.05, 1024.0, 12 * HOUR)
USUAL = Wanted(0.6, 0.95, 1.0, 0.1)

SAMPLES = st.lists(st.floats(0, 1000), min_size=1, max_size=40)
SHARES = st.floats(0, 1)
ROUNDING = 1e-9


def test_the_reference_buckets() -> None:
    assert CPU.histogram().buckets.count == math.ceil(math.log(1024 * 0.05 / 0.025 + 1, 1.05)) + 1


def test_nothing_is_recommended_of_nothing() -> None:
    assert recommended(CPU.histogram(), USUAL) is None


def test_one_use_by_hand() -> None:
    histogram = CPU.histogram()
    for _ in range(100):
        histogram.add(0.5, 1.0, NOW)
    # Bucket 14 is from 0.48997 to 0.53946 cores; its end and a tenth, cut off to millicores.
    end = 0.025 * (1.05**15 - 1) / 0.05
    found = recommended(histogram, USUAL, MILLI)
    assert found is not None
    assert found.target == int(end * 1000 * 1.1)
    assert found.lower == found.upper == found.target


@given(SAMPLES, SHARES, SHARES, SHARES, st.floats(0, 3), st.integers(0, 10**6), st.integers(0, 10**6))
def test_in_order_and_within_bounds(
    samples: list[float], lower: float, target: float, upper: float, margin: float, one: int, other: int
) -> None:
    least, most = sorted((one, other))
    histogram = CPU.histogram()
    for sample in samples:
        histogram.add(sample, 1.0, NOW)
    found = recommended(histogram, Wanted(lower, target, upper, margin, least, most), MILLI)
    assert found is not None
    assert least <= found.lower <= found.target <= found.upper <= most


@given(SAMPLES, SHARES, st.floats(0, 1))
def test_more_use_never_recommends_less(samples: list[float], share: float, more: float) -> None:
    wanted = Wanted(share, share, share, 0.1)
    less, larger = CPU.histogram(), CPU.histogram()
    for sample in samples:
        less.add(sample, 1.0, NOW)
        larger.add(sample + more, 1.0, NOW)
    one, other = recommended(less, wanted, MILLI), recommended(larger, wanted, MILLI)
    assert one is not None
    assert other is not None
    assert one.target <= other.target


@given(SAMPLES)
def test_the_same_buckets_again_change_nothing(samples: list[float]) -> None:
    histogram = CPU.histogram()
    for sample in samples:
        histogram.add(sample, 1.0, NOW)
    again = rearranged(histogram, CPU)
    assert list(again.weights) == pytest.approx(list(histogram.weights))
    assert again.reference == histogram.reference


@given(SAMPLES, st.floats(0.02, 0.5), SHARES)
@example([0.0] * 7 + [1.0, 1.0, 4.0], 0.5, 0.9)
def test_other_buckets_recommend_about_the_same(samples: list[float], growth: float, share: float) -> None:
    """What lies in a bucket goes to that of its middle, whose end is at most a bucket of either layout away.

    Where the weight up to a bucket is just the share that is asked for, the last digit of sums decides between that bucket
    and the next one that is not empty, however far that is: nine of ten samples are up to 1, and what is above is 4.
    """
    histogram = CPU.histogram()
    for sample in samples:
        histogram.add(sample, 1.0, NOW)
    other = rearranged(histogram, Layout(0.025, growth, 1024.0, HOUR))
    least, most = (histogram.percentile(share + rounding) for rounding in (-ROUNDING, ROUNDING))
    after = other.percentile(share)
    assert after <= (most * (1 + growth) + 0.025) * (1 + ROUNDING)
    assert least <= (after * 1.05 + 0.025) * (1 + ROUNDING)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(0.0, 0.05, 1024.0, HOUR), "larger than 0"),
        (Layout(2.0, 0.05, 1.0, HOUR), "smaller than"),
        (Layout(0.025, 0.0, 1024.0, HOUR), "larger than the one before"),
        (Layout(0.001, 0.0001, 1024.0, HOUR), "more than 2,000"),
        (Layout(0.025, 0.05, 1024.0, 0), "half-life"),
    ],
)
def test_buckets_that_cannot_be(layout: Layout, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        layout.check()


def test_a_change() -> None:
    assert not differs(100, 110, 0.1)
    assert differs(100, 111, 0.1)
    assert differs(100, 89, 0.1)
    assert differs(0, 1, 0.1)
    assert not differs(0, 0, 0.0)
