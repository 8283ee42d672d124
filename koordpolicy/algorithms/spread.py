"""Pods spread evenly over the values of a label: which nodes would make the spread too uneven.

All arrays have an element for each node. A domain is a value of the label, as a number from 1; 0 is for
nodes without the label.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Column, Mask

UNEVEN: Final = "node(s) didn't match pod topology spread constraints"
LABEL_MISSING: Final = f"{UNEVEN} (missing required label)"

_BEST: Final = 100


@dataclass(frozen=True, slots=True)
class HardSpread:
    """A constraint that refuses nodes.

    `pods` are the matching pods on each node, `eligible` the nodes that count, `own` is 1 when the pod
    itself matches.
    """

    domains: Column
    size: int
    pods: Column
    eligible: Mask
    max_skew: int
    min_domains: int
    own: int


def spread_refusals(constraints: Sequence[HardSpread], count: int) -> tuple[Mask, Mask]:
    """The nodes that lack the label of a constraint, and those where the spread would be too uneven.

    Constraints decide in their order, a node counts for the first that refuses it.
    """
    missing, uneven = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    left = np.ones(count, np.bool_)
    for one in constraints:
        lacks = one.domains == 0
        missing |= lacks & left
        left &= ~lacks
        sums, present = _by_domain(one)
        least = int(sums[present].min()) if np.count_nonzero(present) >= one.min_domains else 0
        too_many = sums + (one.own - least) > one.max_skew
        refused = too_many[one.domains] & left
        uneven |= refused
        left &= ~refused
    return missing, uneven


def _by_domain(one: HardSpread) -> tuple[Column, Mask]:
    """The pods in each domain, and the domains that have a node that counts."""
    counting = one.domains if one.eligible.all() else np.where(one.eligible, one.domains, 0)
    sums = np.bincount(counting, weights=one.pods, minlength=one.size).astype(np.int64)
    present = np.bincount(counting, minlength=one.size) > 0
    sums[0] = 0
    present[0] = False
    return sums, present


@dataclass(frozen=True, slots=True)
class SoftSpread:
    """A constraint that scores nodes. With `by_node` a node's own pods count, and each node is a domain."""

    domains: Column
    size: int
    pods: Column
    eligible: Mask
    max_skew: int
    by_node: bool


def spread_raw(
    constraints: Sequence[SoftSpread], candidates: NDArray[Any], ignored: Mask
) -> NDArray[np.float64]:
    """How crowded each candidate is; little is good. `ignored` are those candidates that have no part in it."""
    total = np.zeros(len(candidates))
    others = candidates[~ignored]
    for one in constraints:
        mine = one.domains[candidates]
        if one.by_node:
            counts = one.pods[candidates]
            domains = len(others)
        else:
            there = np.zeros(one.size, np.bool_)
            there[one.domains[others]] = True
            counting = np.where(one.eligible, one.domains, 0)
            counts = np.bincount(counting, weights=one.pods, minlength=one.size)[mine]
            domains = int(np.count_nonzero(there))
        score = counts * np.log(float(domains + 2)) + (one.max_skew - 1)
        total += np.where(mine > 0, score, 0.0)
    return np.floor(total + 0.5)


def spread_normalized(raw: NDArray[np.float64], ignored: Mask) -> Column:
    """0 to 100, the more the less crowded; 0 for ignored ones."""
    found = np.zeros(len(raw), np.int64)
    others = raw[~ignored].astype(np.int64)
    if not len(others):
        return found
    least, most = int(others.min()), int(others.max())
    found[~ignored] = _BEST if most == 0 else _BEST * (most + least - others) // most
    return found
