"""How much of a pod's images a node has already."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column

_MIB: Final = 1 << 20
LEAST: Final = 23 * _MIB
"""Bytes of images that make no difference."""
MOST_EACH: Final = 1000 * _MIB
"""Bytes for each container beyond which more make none."""
_BEST: Final = 100


def image_scores(present: Sequence[tuple[Column, int]], total: int, containers: int, count: int) -> Column:
    """0 to 100 for each of `count` nodes.

    `present` are, for each container whose image some node has, its bytes on these nodes, 0 where it is not,
    and how many of all the `total` nodes have it: what few have counts little, lest all pods gather there.
    """
    found = np.zeros(count, np.int64)
    if not total or not containers:
        return found
    for sizes, holders in present:
        spread = float(holders) / float(total)
        found += (sizes * spread).astype(np.int64)
    most = MOST_EACH * containers
    found = np.clip(found, LEAST, most)
    return _BEST * (found - LEAST) // (most - LEAST)
