"""Host ports: nodes where another pod has one of the pod's ports."""

from collections.abc import Hashable
from typing import Final

import numpy as np

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, Plugin, Said
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.verdicts import Verdicts

NOT_FREE: Final = "node(s) didn't have free ports for the requested pod ports"


def ports_wanted(pod: PodView, _around: ClusterState, _said: Said) -> Hashable | None:
    """The pod's ports; None without any."""
    return pod.ports or None


def node_ports(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes without one of the ports."""
    taken = nodes.some(nodes.state.ports.taken(pod.ports, nodes.total))
    return Verdicts((NOT_FREE,), taken[np.newaxis], np.zeros(nodes.count, np.bool_))


NODE_PORTS: Final = Plugin(
    filter=node_ports,
    helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
    row_only=False,
    cache_key=ports_wanted,
    ordinary_with=0,
    of_kubernetes=True,
)
