"""Pods near pods and away from pods: what the pods in a node's domains mean for another one.

A domain is a value of a node's label, as a number from 1; 0 is for nodes without the label. All arrays
have an element for each node.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Column, Mask

NOT_NEAR: Final = "node(s) didn't match pod affinity rules"
NOT_APART: Final = "node(s) didn't match pod anti-affinity rules"
OTHERS_OBJECT: Final = "node(s) didn't satisfy existing pods anti-affinity rules"

_BEST: Final = 100


@dataclass(frozen=True, slots=True)
class Near:
    """Pods on each node (or their weights), and the domains in which they count."""

    domains: Column
    size: int
    pods: Column

    def sums(self) -> Column:
        """What is in each node's domain; 0 for nodes without the label."""
        found = np.bincount(self.domains, weights=self.pods, minlength=self.size).astype(np.int64)
        found[0] = 0
        return found[self.domains]


def affinity_refusals(terms: Sequence[Near], matches_itself: bool, count: int) -> Mask:
    """The nodes without a pod that all terms want, in the domain of each.

    Where there is none anywhere, a pod that its own terms want may be the first.
    """
    refused = np.zeros(count, np.bool_)
    if not terms:
        return refused
    pods = terms[0].pods
    if matches_itself and not any((pods[one.domains > 0] > 0).any() for one in terms):
        for one in terms:
            refused |= one.domains == 0
        return refused
    for one in terms:
        refused |= one.sums() == 0
    return refused


def anti_affinity_refusals(terms: Iterable[Near], count: int) -> Mask:
    """The nodes with an unwanted pod in the domain of any term."""
    refused = np.zeros(count, np.bool_)
    for one in terms:
        refused |= one.sums() > 0
    return refused


def weighed(wishes: Iterable[Near], count: int) -> Column:
    """What is in each node's domains, in all."""
    total = np.zeros(count, np.int64)
    for one in wishes:
        total += one.sums()
    return total


def interpod_normalized(raw: NDArray[Any]) -> Column:
    """0 to 100 between the least and the most; all 0 where they are equal."""
    if not len(raw):
        return np.zeros(0, np.int64)
    least, most = int(raw.min()), int(raw.max())
    if least == most:
        return np.zeros(len(raw), np.int64)
    # In this order of operations, since that is what decides about the last point.
    return (float(_BEST) * ((raw - least) / float(most - least))).astype(np.int64)
