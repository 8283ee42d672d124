"""What it costs to displace pods for a gang, node by node, and in which order those who may go are kept."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class JobPart(NamedTuple):
    """A pod that may go: its priority, and the job that it is a part of (empty for none)."""

    priority: int
    job: str


def node_costs(victims: Mapping[str, Sequence[JobPart]]) -> dict[str, int]:
    """The cost of each node whose pods may go, in the order in which they are met there; nodes without any have none.

    All priorities that occur are ranked from 0, the lowest first. A job on a node costs the rank of its first pod there; pods
    without a job count as parts of one.
    """
    ranks = {
        priority: rank
        for rank, priority in enumerate(
            sorted({part.priority for parts in victims.values() for part in parts})
        )
    }
    costs = {}
    for node, parts in victims.items():
        first: dict[str, int] = {}
        for part in parts:
            first.setdefault(part.job, ranks[part.priority])
        if parts:
            costs[node] = sum(first.values())
    return costs
