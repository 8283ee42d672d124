"""How much of a pod's images a node has already."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from koordpolicy.mechanism.columns import Column

_MIB: Final = 1 << 20
LEAST: Final = 23 * _MIB
"""Bytes of images that make no difference."""
MOST_EACH: Final = 1000 * _MIB
"""Bytes for each container beyond which more make none."""
_BEST: Final = 100


def image_scores(present: Sequence[Column], total: int, containers: int, count: int) -> Column:
    """0 to 100 for each of `count` nodes.

    `present` are the bytes of the image of each container that some node has, 0 on nodes without it; an image
    on few of the `total` nodes counts little, lest all pods gather there.
    """
    found = np.zeros(count, np.int64)
    if not total or not containers:
        return found
    for sizes in present:
        spread = float(np.count_nonzero(sizes)) / float(total)
        found += (sizes * spread).astype(np.int64)
    most = MOST_EACH * containers
    found = np.clip(found, LEAST, most)
    return _BEST * (found - LEAST) // (most - LEAST)
