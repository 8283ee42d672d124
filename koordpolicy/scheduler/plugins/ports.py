"""Host ports: nodes where another pod has one of the pod's ports."""

from collections.abc import Hashable
from typing import Final

import numpy as np

from koordpolicy.cluster import ClusterState
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.scheduler.plugins.base import Parameters, Said, Verdicts

NOT_FREE: Final = "node(s) didn't have free ports for the requested pod ports"


def ports_wanted(pod: PodView, _around: ClusterState, _said: Said) -> Hashable | None:
    """The pod's ports; None without any."""
    return pod.ports or None


def node_ports(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes without one of the ports."""
    taken = nodes.some(nodes.state.ports.taken(pod.ports, nodes.total))
    return Verdicts((NOT_FREE,), taken[np.newaxis], np.zeros(nodes.count, np.bool_))
