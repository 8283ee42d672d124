"""Different values as NumPy's `unique` has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.distinct import among, distinct


@given(st.lists(st.integers(-5, 5), max_size=30))
def test_the_different_values_in_order(values: list[int]) -> None:
    found = distinct(np.array(values, dtype=np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == sorted(set(values))


@given(
    st.lists(st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -2.0, *map(float, range(9))])),
    st.lists(st.sampled_from([0.0, 1.5, float("nan"), float("inf"), -3.0, *map(float, range(9))])),
)
def test_which_are_among_others(values: list[float], items: list[float]) -> None:
    found = among(np.array(values, dtype=np.float64), items)
    assert found.tolist() == np.isin(np.array(values), np.array(items)).tolist()
    codes = np.array([int(value) for value in values if abs(value) < 10], dtype=np.int32)
    whole = [int(item) for item in items if abs(item) < 10]
    assert among(codes, whole).tolist() == [int(code) in whole for code in codes]


@pytest.mark.parametrize(
    ("values", "found"), [([], []), (["b", "a", "b"], ["a", "b"]), ([[2, 1], [1, 3]], [1, 2, 3])]
)
def test_of_any_kind_and_shape(values: list[object], found: list[object]) -> None:
    assert distinct(np.array(values)).tolist() == found
