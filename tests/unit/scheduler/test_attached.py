"""Volumes attached to nodes, and how many a node takes."""

import pytest

from koordpolicy.cluster.attached import Attached
from koordpolicy.model.quantity import INT64_MAX, INT64_MIN


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (0, 1),
        (25, 26),
        (None, 0),
        (INT64_MAX - 1, INT64_MAX),
        (INT64_MAX, INT64_MAX),
        (INT64_MIN, INT64_MIN + 1),
    ],
)
def test_any_limit_that_a_node_names_fits_into_a_column(limit: int | None, shown: int) -> None:
    attached = Attached()
    attached.limit("disk.example.com", 1, 3)
    attached.limit("disk.example.com", 0, limit)
    column = attached.limits("disk.example.com", 2)
    assert column is not None
    assert column.tolist() == [shown, 4]
