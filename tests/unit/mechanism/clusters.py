"""Random nodes and pods for properties: a row form and the columns of the same nodes."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from koordpolicy.mechanism.columns import Column
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY

RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", BATCH_CPU, BATCH_MEMORY, "nvidia.com/gpu")

# Small numbers make equality and exhaustion likely; large ones make rounding visible.
AMOUNT = st.one_of(st.integers(0, 12), st.integers(0, 100_000), st.integers(0, 2**45))
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


def columns(lists: list[dict[str, int]]) -> dict[str, Column]:
    """The columns of one resource list a node; resources that no node has are left out."""
    names = {name for one in lists for name in one}
    return {name: np.array([one.get(name, 0) for one in lists], dtype=np.int64) for name in names}
