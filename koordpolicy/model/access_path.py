"""The one place that decides how some rows of a table are read: one by one, gathered into arrays, or with all others.

An operation on arrays costs as much as a few rows one by one, however few entries it has: few rows are
looked at one by one. Gathering costs more for an entry than going through all in order: many rows are computed with all
others. What the three cost about some number of rows is measured by `python -m tests.benchmarks access`.
"""

from enum import Enum, auto
from typing import Final

ONE_BY_ONE: Final = 12
"""So many rows at most are read one by one."""

SHARE: Final = 2
"""Of a table, at most one row in so many is gathered."""


class AccessPath(Enum):
    """A way to read rows of a table."""

    ONE_BY_ONE = auto()
    GATHER = auto()
    ALL = auto()


def access_path(rows: int, total: int | None = None) -> AccessPath:
    """How to read so many rows. `total` is how many there are, where what is known of the others can be kept."""
    if total is not None and rows * SHARE > total:
        return AccessPath.ALL
    return AccessPath.ONE_BY_ONE if rows <= ONE_BY_ONE else AccessPath.GATHER
