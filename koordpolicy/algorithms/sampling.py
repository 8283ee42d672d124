"""How many nodes are worth a look when there are very many."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST: Final = 100
"""So many feasible nodes are sought in any case."""

_ADAPTIVE_MOST, _ADAPTIVE_LEAST, _ADAPTIVE_STEP = 50, 5, 125


def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes end the search among so many.

    A percentage of 0 adapts: 50 % of few nodes, less the more there are, at least 5 %.
    """
    if nodes < LEAST or percentage >= 100:
        return nodes
    if percentage <= 0:
        percentage = max(_ADAPTIVE_LEAST, _ADAPTIVE_MOST - nodes // _ADAPTIVE_STEP)
    return max(LEAST, nodes * percentage // 100)


def first_found(
    feasible: NDArray[np.int64], nodes: int, start: int, wanted: int
) -> tuple[NDArray[np.int64], int]:
    """The first `wanted` feasible nodes from `start` on, round the end; and how many nodes were looked at.

    `feasible` are numbers below `nodes`, ascending, and so are the ones that are found.
    """
    if len(feasible) < wanted or wanted <= 0:
        return feasible, nodes
    at = int(np.searchsorted(feasible, start))
    found = np.concatenate((feasible[at:], feasible[:at]))[:wanted]
    return np.sort(found), (int(found[-1]) - start) % nodes + 1
