"""How many pods of a row of pods each node has room for, if they came one after the other."""

from collections.abc import Sequence

import numpy as np

from koordpolicy.algorithms.columns import Column
from koordpolicy.model.quantity import INT64_MAX


def room_for(needs: Sequence[int], free: Column) -> Column:
    """How many of these pods, from the first on, fit on each node, as far as one resource goes.

    A pod that needs none of it fits whatever is free, which may be less than nothing.
    """
    found = np.full(len(free), len(needs), np.int64)
    wanting = [at for at, need in enumerate(needs) if need > 0]
    if not wanting:
        return found
    sums, total = np.empty(len(wanting), np.int64), 0
    for place, at in enumerate(wanting):
        total = min(total + needs[at], INT64_MAX)
        sums[place] = total
    fitting = np.searchsorted(sums, free, side="right")
    # The first pod that does not fit ends the row, and with it those in between that need nothing.
    first_short = np.array([*wanting, len(needs)], np.int64)
    found[:] = first_short[fitting]
    return found
