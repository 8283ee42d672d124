"""The one place that decides how some rows of a table are read: one by one, gathered into arrays, or with all others.

An operation on arrays costs as much as a few rows one by one, however few entries it has. So few rows are read one by
one, many together; and where what is known of the other rows would have to be joined to what is found, it is soon
cheaper to read all, which join nothing, than some. What the ways cost is measured by `python -m tests.benchmarks access`.
"""

from enum import Enum, auto
from typing import Final

# All costs are in rows: what one costs that is read by itself, 7 to 8 µs for the built-in profile.
_SET_UP: Final = 12
"""Making ready to read rows one by one."""
_GATHER: Final = 30
"""The operations on arrays of rows that are gathered."""
_GATHERED: Final = 1 / 16
"""A row that is gathered, beside that."""
_JOINED: Final = 1 / 1000
"""A row to which others are joined."""
_ALL: Final = 21
"""The operations on the arrays of all rows, which need not be gathered but are copied, to be kept."""
_EACH: Final = 1 / 245
"""A row of all, beside that."""


class AccessPath(Enum):
    """A way to read rows of a table."""

    ONE_BY_ONE = auto()
    GATHER = auto()
    ALL = auto()


def access_path(rows: int, total: int | None = None, *, ready: bool = False) -> AccessPath:
    """How to read so many rows.

    `total` is how many rows there are, where reading all is another way to know of these; None where only these are
    asked about. `ready` says that no more has to be made ready to read them one by one.
    """
    one_by_one = rows if ready else _SET_UP + rows
    gather = _GATHER + _GATHERED * rows
    if total is not None:
        gather += _JOINED * total
        if _ALL + _EACH * total < min(one_by_one, gather):
            return AccessPath.ALL
    return AccessPath.ONE_BY_ONE if one_by_one <= gather else AccessPath.GATHER
