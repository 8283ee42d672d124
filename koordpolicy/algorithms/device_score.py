"""How good devices are for a request, by how full they are with it. Scores are whole numbers, 0 to 100."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from koordpolicy.model.reading import Amounts

BEST = 100


class FillStrategy(StrEnum):
    """Whether full devices are better, or empty ones."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"


def fill_score(total: int, free: int, request: int, strategy: str) -> int:
    """The score of one resource that has this much in all, of which this much is free."""
    used = total if free > total else total - free + request
    if strategy == FillStrategy.MOST_ALLOCATED:
        return min(used, total) * BEST // total
    return max(0, total - used) * BEST // total


def weighted_score(
    totals: Amounts, frees: Amounts, request: Amounts, weights: Mapping[str, int], strategy: str
) -> int:
    """The same over several resources. One that is not there does not count; one that is not asked for does."""
    score = sum_of_weights = 0
    for name, weight in weights.items():
        total = totals.get(name, 0)
        if total > 0 and weight > 0:
            score += weight * fill_score(total, frees.get(name, 0), request.get(name, 0), strategy)
            sum_of_weights += weight
    return score // sum_of_weights if sum_of_weights else 0


def node_score(
    totals: Sequence[Amounts],
    frees: Sequence[Amounts],
    each: Amounts,
    weights: Mapping[str, int],
    strategy: str,
) -> int:
    """The score of all devices of a sort together. What is asked of one device counts once, however many are asked for."""
    return weighted_score(_sums(totals), _sums(frees), each, weights, strategy)


def _sums(amounts: Iterable[Amounts]) -> Amounts:
    found: dict[str, int] = {}
    for one in amounts:
        for name, number in one.items():
            found[name] = found.get(name, 0) + number
    return found
