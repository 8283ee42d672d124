import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.shares import MOST_SHARES, shares_of_weight, weight_of_shares


@given(st.integers(2, MOST_SHARES))
def test_weights_are_in_range_and_grow_with_shares(shares: int) -> None:
    assert 1 <= weight_of_shares(shares) <= 10_000
    assert weight_of_shares(shares) >= weight_of_shares(max(2, shares - 1))
    assert weight_of_shares(shares_of_weight(weight_of_shares(shares))) <= weight_of_shares(shares)


@pytest.mark.parametrize("shares", [1, 0, -5, MOST_SHARES + 1])
def test_shares_out_of_range(shares: int) -> None:
    with pytest.raises(ValueError, match="outside 2 to 262144"):
        weight_of_shares(shares)


@pytest.mark.parametrize("weight", [0, 10_001])
def test_weights_out_of_range(weight: int) -> None:
    with pytest.raises(ValueError, match="outside 1 to 10000"):
        shares_of_weight(weight)
