"""Host ports: nodes where another pod has one of the pod's ports."""

from collections.abc import Hashable
from typing import Final

import numpy as np

from koordpolicy.scheduler.mechanisms.base import Parameters, Said, Verdicts
from koordpolicy.scheduler.nodes import NodeView
from koordpolicy.scheduler.pods import PodView
from koordpolicy.scheduler.surroundings import Surroundings

NOT_FREE: Final = "node(s) didn't have free ports for the requested pod ports"


def ports_wanted(pod: PodView, _around: Surroundings, _said: Said) -> Hashable | None:
    """The pod's ports; None without any."""
    return pod.ports or None


def node_ports(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes without one of the ports."""
    taken = nodes.some(nodes.around.ports.taken(pod.ports, nodes.total))
    return Verdicts((NOT_FREE,), taken[np.newaxis], np.zeros(nodes.count, np.bool_))
