"""How evenly a node's resources would be used: the spread of the requested shares.

`classic` is the score with the pod (Kubernetes up to 1.35), `delta` how the pod changes it (from 1.36).
Both count plain requests. Shares are double precision in the order the resources are declared, so that
the whole-number score is the reference's to the digit.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Amount, Columns, Mask
from koordpolicy.algorithms.pod_request import requests_anything
from koordpolicy.model.protocol import is_scalar
from koordpolicy.model.reading import Amounts

BEST: Final = 100.0

Shares = NDArray[np.float64]


def takes_part(request: Amounts) -> bool:
    """Whether the score is asked for at all: not for a pod that requests nothing."""
    return requests_anything(request)


Balance = Callable[[Amounts, Amounts], int]
"""The score of a node of what it has and what is requested there."""


def classic_one(resources: Sequence[str], request: Amounts) -> Balance:
    """`classic` of one node after the other, for one pod."""
    return _balance_one([(name, request.get(name, 0)) for name in _counted(resources, request)])


def delta_one(resources: Sequence[str], request: Amounts) -> Balance:
    """`delta` of one node after the other, for one pod."""
    after = classic_one(resources, request)
    before = _balance_one([(name, 0) for name in _counted(resources, request)])
    return lambda allocatable, requested: (
        50 + (50 + after(allocatable, requested) - before(allocatable, requested)) // 2
    )


def classic_all(
    resources: Sequence[str], request: Amounts, allocatable: Columns, requested: Columns, count: int
) -> Shares:
    """`classic` for all `count` nodes at once."""
    return _balance_all(_counted(resources, request), request, allocatable, requested, count)


def delta_all(
    resources: Sequence[str], request: Amounts, allocatable: Columns, requested: Columns, count: int
) -> Shares:
    """`delta` for all `count` nodes at once."""
    counted = _counted(resources, request)
    after = _balance_all(counted, request, allocatable, requested, count)
    before = _balance_all(counted, {}, allocatable, requested, count)
    # Both are whole numbers, and so is half their distance, rounded down.
    after -= before
    after += 50
    after *= 0.5
    np.floor(after, out=after)
    after += 50
    return after


def _counted(resources: Sequence[str], request: Amounts) -> list[str]:
    return [name for name in resources if request.get(name, 0) != 0 or not is_scalar(name)]


def _balance_one(counted: Sequence[tuple[str, int]]) -> Balance:
    """The balance of nodes with so much more of some resources requested there."""

    def balance(allocatable: Amounts, requested: Amounts) -> int:
        shares = []
        for resource, asked in counted:
            has = allocatable.get(resource, 0)
            if has:
                # Each side becomes a double first, as in Go; one exact division could differ above 2⁵³.
                share = float(requested.get(resource, 0) + asked) / float(has)
                shares.append(min(1.0, share))
        return _balance(shares)

    return balance


def _balance(shares: Sequence[float]) -> int:
    spread = 0.0
    if len(shares) == 2:
        spread = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        squares = 0.0
        for share in shares:
            squares += (share - mean) * (share - mean)
        spread = math.sqrt(squares / len(shares))
    return int((1.0 - spread) * BEST)


def _balance_all(
    counted: Sequence[str], request: Amounts, allocatable: Columns, requested: Columns, count: int
) -> Shares:
    """The same sums in the same order; a node without a resource adds 0.0, which changes no double."""
    columns = [
        _share_column(requested[resource], request.get(resource, 0), allocatable[resource])
        for resource in counted
        if not allocatable[resource].nowhere
    ]
    if len(columns) < 2:
        return np.full(count, BEST)
    twice = _pair_distance(*columns) if len(columns) == 2 else 2 * _general_spread(columns, count)
    # Twice the spread saves a step: twice and half as much as a double are no less exact than the double.
    np.subtract(2.0, twice, out=twice)
    twice *= BEST / 2
    return np.trunc(twice, out=twice)


_Share = tuple[Shares, Mask | None]
"""The requested share of each node, and which nodes have the resource at all (None: every one)."""


def _share_column(used: Amount, asked: int, has: Amount) -> _Share:
    divisors, counts = has.divisors
    wanted, _ = used.increased(asked, has)
    share: Shares = np.divide(wanted, divisors, out=wanted if wanted.dtype.kind == "f" else None)
    if used.high + asked > has.low:
        np.minimum(share, 1.0, out=share)
    return share, counts


def _pair_distance(one: _Share, other: _Share) -> Shares:
    """The distance of two resources, which is twice their spread; 0 where there is but one of them."""
    distance = one[0]
    distance -= other[0]
    np.abs(distance, out=distance)
    for _, counts in (one, other):
        if counts is not None:
            distance *= counts
    return distance


def _general_spread(found: Sequence[_Share], count: int) -> Shares:
    """The spread of any number of resources, of which each node may have only some."""
    columns = [(share, np.ones(count, np.bool_) if counts is None else counts) for share, counts in found]
    number = np.zeros(count)
    total = np.zeros(count)
    for share, counts in columns:
        number += counts
        total += np.where(counts, share, 0.0)
    mean = total / np.maximum(number, 1.0)
    squares = np.zeros(count)
    highest = np.zeros(count)
    lowest = np.ones(count)
    for share, counts in columns:
        squares += np.where(counts, (share - mean) * (share - mean), 0.0)
        highest = np.where(counts, np.maximum(highest, share), highest)
        lowest = np.where(counts, np.minimum(lowest, share), lowest)
    deviation = np.sqrt(squares / np.maximum(number, 1.0))
    return np.where(number == 2, (highest - lowest) / 2, np.where(number > 2, deviation, 0.0))
