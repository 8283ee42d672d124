"""Random nodes and pods for properties: a row form and the columns of the same nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from koordpolicy.algorithms.columns import EXACT, Amount
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY

RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", BATCH_CPU, BATCH_MEMORY, "nvidia.com/gpu")

# Small numbers make equality and exhaustion likely; large ones make rounding visible.
AMOUNT = st.one_of(st.integers(0, 12), st.integers(0, 100_000), st.integers(0, 2**45), st.integers(0, 2**55))
LIST = st.dictionaries(st.sampled_from(RESOURCES), AMOUNT)


@dataclass(frozen=True, slots=True)
class RandomNode:
    """One node's totals."""

    allocatable: dict[str, int]
    requested: dict[str, int]
    nonzero: dict[str, int]
    pod_count: int


NODE = st.builds(RandomNode, LIST, LIST, LIST, st.integers(0, 5))
NODES = st.lists(NODE, min_size=1, max_size=6)


class columns(dict[str, Amount]):  # noqa: N801 called as the function that it stands for
    """The columns of one resource list a node."""

    def __init__(self, lists: Sequence[Mapping[str, int]]) -> None:
        super().__init__()
        self._lists = lists

    def __missing__(self, name: str) -> Amount:
        return amount(*(one.get(name, 0) for one in self._lists))


def amount(*values: int) -> Amount:
    """An amount of each node."""
    low, high = min(values, default=0), max(values, default=0)
    exact = low > -EXACT and high < EXACT
    return Amount(np.array(values, np.float64 if exact else np.int64), low, high)
