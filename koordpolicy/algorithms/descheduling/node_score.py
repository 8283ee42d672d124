"""Which of the nodes that are over their thresholds comes first."""

from collections.abc import Mapping
from typing import Final

_FULL: Final = 1000


def usage_score(usage: Mapping[str, int], capacity: Mapping[str, int], weights: Mapping[str, int]) -> int:
    """How full a node is, 0..1000: the weighted mean over the resources in `usage`, each and the mean cut to an integer.

    Usage above the capacity counts as the capacity; a resource without capacity scores 0 with its weight; one without a weight
    does not count. 0 when nothing counts. As Koordinator sorts the sources of LowNodeLoad.
    """
    weight_sum = sum(weights.get(name, 0) for name in usage)
    if weight_sum == 0:
        return 0
    score = 0
    for name, used in usage.items():
        total = capacity.get(name, 0)
        if total > 0:
            score += weights.get(name, 0) * (_FULL * min(used, total) // total)
    return score // weight_sum
