"""How well a pod's going would relieve its node."""

from collections.abc import Mapping


def relief_score(usage: Mapping[str, int], excess: Mapping[str, int], weights: Mapping[str, int]) -> float:
    """The higher the better: 2 for a pod that uses just what its node uses too much of, less for one that uses more or less.

    `excess`: by how much the node is above its threshold; only resources of which it is above count. Koordinator's score.
    """
    total, weight_sum = 0.0, 0
    for name, used in usage.items():
        over = excess.get(name, 0)
        weight = weights.get(name, 0) if over > 0 else 0
        weight_sum += weight
        if weight and used > 0:
            ratio = used / over
            total += weight * (ratio if ratio < 1 else 1 + 1 / ratio)
    return total / weight_sum if weight_sum else 0.0
