"""Pods whose gang is planned go to the nodes that it is planned on, and to no other."""

from collections.abc import Hashable
from typing import Final

from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.scheduler.plugins.base import Said
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.verdicts import Verdicts, one_reason, refuses_none

NETWORK: Final = "NetworkTopology"
"""The filter of the profile in whose name a gang is refused that cannot be planned."""
ELSEWHERE: Final = "node(s) are not the one that the pod is planned on with its gang"


def planned(pod: PodView, state: ClusterState, _said: Said) -> Hashable | None:
    """The node that the pod is planned on; None where it is in no plan."""
    plans = state.network.planned
    return plans.get(pod.pod.key) if plans else None


def planned_only(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """All nodes but that one; none of a pod that is in no plan."""
    node = nodes.state.network.planned.get(pod.pod.key)
    if node is None:
        return refuses_none((ELSEWHERE,), nodes.count)
    return one_reason(nodes.names() != nodes.code(node), ELSEWHERE)
