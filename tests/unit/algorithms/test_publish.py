"""From calculated amounts to published ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.publish import differs, normalized, normalized_thousandths, published

AMOUNTS = st.dictionaries(st.sampled_from(("cpu", "memory")), st.integers(0, 10**15))


@given(AMOUNTS, st.lists(AMOUNTS, max_size=3))
def test_what_is_offered_lies_between_nothing_and_the_origin(
    amounts: dict[str, int], taken: list[dict[str, int]]
) -> None:
    found = published(amounts, taken)
    assert found.origin == amounts
    for resource, amount in amounts.items():
        left = amount - sum(one.get(resource, 0) for one in taken)
        assert found.offered[resource] == max(0, left) <= amount


@given(st.integers(0, 10**7), st.floats(1.0, 5.0))
def test_normalisation_rounds_up_by_less_than_one(milli: int, ratio: float) -> None:
    thousandths = normalized_thousandths(milli, ratio)
    assert normalized(milli, ratio) * 1000 - thousandths in range(1000)
    assert normalized(milli, ratio) >= milli


@pytest.mark.parametrize("ratio", [None, 1.0, 0.5])
def test_a_ratio_of_one_and_less_changes_nothing(ratio: float | None) -> None:
    assert (normalized(10_001, ratio), normalized(10_001, 1.5)) == (10_001, 15_002)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(None, None, False), (None, 0, True), (0, None, True), (0, 0, False), (0, 1, True), (100, 110, False)],
)
def test_differences(old: int | None, new: int | None, expected: bool) -> None:
    assert differs(old, new, 0.1) is expected
    assert differs(100, 111, 0.1)
    assert not differs(100, 90, 0.1)
