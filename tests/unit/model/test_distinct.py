"""Different values as NumPy's `unique` has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.distinct import distinct


@given(st.lists(st.integers(-5, 5), max_size=30))
def test_the_different_values_in_order(values: list[int]) -> None:
    found = distinct(np.array(values, dtype=np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == sorted(set(values))


@pytest.mark.parametrize(
    ("values", "found"), [([], []), (["b", "a", "b"], ["a", "b"]), ([[2, 1], [1, 3]], [1, 2, 3])]
)
def test_of_any_kind_and_shape(values: list[object], found: list[object]) -> None:
    assert distinct(np.array(values)).tolist() == found
