"""What nodes use beyond their thresholds, over the columns of all nodes: whom to relieve, and who can take what leaves.

The arithmetic is LowNodeLoad's of Koordinator. All tables have a row a node and a column a resource; amounts are integers in
the unit of their resource, thresholds percentages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.int64]
Percentages = NDArray[np.float64]
Flags = NDArray[np.bool_]

_ALL: Final = 100.0


class LoadGroup(IntEnum):
    """What a node is to others of its pool, by its use and by that of its prod pods."""

    IGNORED = 0
    """Nothing is known of what it uses."""
    APPROPRIATE = 1
    LOW = 2
    """Takes pods that leave nodes which are too full."""
    HIGH = 3
    """Gives pods of any band away."""
    PROD_LOW = 4
    """Takes prod pods."""
    PROD_HIGH = 5
    """Gives prod pods away."""
    BOTH_LOW = 6
    """Takes pods of either sort."""


@dataclass(frozen=True, slots=True)
class ThresholdShares:
    """LoadThresholds as policy says them, NaN where it says none; in `deviation` they are distances from the mean of the pool."""

    low: Percentages
    high: Percentages
    deviation: bool = False

    def filled(self) -> "ThresholdShares":
        """With both of a resource whose low one is not said: nothing is too much of it then, nor too little.

        A high one that is not said beside a low one is 0.
        """
        fill = 0.0 if self.deviation else _ALL
        unsaid = np.isnan(self.low)
        low = np.where(unsaid, fill, self.low)
        high = np.where(unsaid, fill, np.where(np.isnan(self.high), 0.0, self.high))
        return ThresholdShares(low, high, self.deviation)


@dataclass(frozen=True, slots=True)
class LoadThresholds:
    """Amounts: a node is low up to `low`, and high above `high`."""

    low: Amounts
    high: Amounts


def shares_table(
    said: Sequence[Mapping[str, float]], resources: Sequence[str], fill: float = np.nan
) -> Percentages:
    """What each node's map says of each resource; `fill` where it says nothing."""
    return np.array([[one.get(name, fill) for name in resources] for one in said], np.float64).reshape(
        len(said), len(resources)
    )


def amounts_of(shares: ThresholdShares, usage: Amounts, capacity: Amounts, known: Flags) -> LoadThresholds:
    """The thresholds of each node in amounts. `known`: the nodes of whose use something is known; the mean is theirs.

    A share of 0 % as deviation leaves the resource out: both thresholds are the whole capacity.
    """
    filled = shares.filled()
    if not filled.deviation:
        return LoadThresholds(_part(filled.low, capacity), _part(filled.high, capacity))
    mean = _mean_use(usage, capacity, known)
    ignored = filled.low == 0
    low = np.where(ignored, _ALL, np.clip(mean - filled.low, 0.0, _ALL))
    high = np.where(ignored, _ALL, np.clip(mean + filled.high, 0.0, _ALL))
    return LoadThresholds(_part(low, capacity), _part(high, capacity))


def groups_of(
    usage: Amounts,
    prod_usage: Amounts,
    thresholds: LoadThresholds,
    prod_thresholds: LoadThresholds,
    unschedulable: Flags,
    known: Flags,
) -> NDArray[np.int64]:
    """The `LoadGroup` of each node."""
    low = ~unschedulable & (usage <= thresholds.low).all(axis=1)
    high = (usage > thresholds.high).any(axis=1)
    prod_low = ~unschedulable & (prod_usage <= prod_thresholds.low).all(axis=1)
    prod_high = (prod_usage > prod_thresholds.high).any(axis=1)
    return np.select(
        [~known, low & prod_high, low & prod_low, low, high, prod_high, prod_low],
        [
            LoadGroup.IGNORED,
            LoadGroup.PROD_HIGH,
            LoadGroup.BOTH_LOW,
            LoadGroup.LOW,
            LoadGroup.HIGH,
            LoadGroup.PROD_HIGH,
            LoadGroup.PROD_LOW,
        ],
        LoadGroup.APPROPRIATE,
    )


def _part(shares: Percentages, capacity: Amounts) -> Amounts:
    # In this order and cut, as Koordinator counts: 29 % of 100 is 28.
    return (shares * 0.01 * capacity).astype(np.int64)


def _mean_use(usage: Amounts, capacity: Amounts, known: Flags) -> Percentages:
    """The mean share of use by resource. A node without capacity of one counts with 0."""
    if not known.any():
        return np.zeros(usage.shape[1])
    used, of = usage[known].astype(np.float64), capacity[known].astype(np.float64)
    shares = np.divide(_ALL * used, of, out=np.zeros_like(used), where=of > 0)
    return np.asarray(shares.sum(axis=0) / len(shares))
