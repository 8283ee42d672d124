"""Single pods that are to be near others of their group in the network of the cluster."""

from collections.abc import Hashable
from typing import Final

import numpy as np

from koordpolicy.algorithms.gathering import GatherKey, nearness
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.nodes import NodeView, Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.scheduler.plugins.base import Said
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.topology.keys import keys_of

_ORDER: Final = "order"


def near_others(pod: PodView, state: ClusterState, _said: Said) -> Hashable | None:
    """The pod's group; None without one, and where no network is known."""
    return None if state.network.topology is None else pod.network_group or None


def nearness_rank(pod: PodView, nodes: NodeView, rows: Rows, parameters: Parameters) -> Scores | None:
    """How near the feasible nodes are to pods of the group, and how little room there is around them for others."""
    network = nodes.state.network
    tree = network.tree
    if tree is None:
        return None
    by_name = np.array(sorted(range(len(rows)), key=network.names(rows).__getitem__), np.int64)
    leaves = tree.leaves_of(nodes.total)[rows]
    scores = np.empty(len(rows), np.int64)
    existing = network.existing(pod.network_group, tree)
    scores[by_name] = nearness(tree, leaves[by_name], existing, parameters.once(_order))
    return scores


def _order(parameters: Parameters) -> tuple[GatherKey, ...]:
    return keys_of(parameters, _ORDER)
