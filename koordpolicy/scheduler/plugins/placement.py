"""What nodes say of themselves: cordons, names, taints, labels."""

from typing import Final

import numpy as np

from koordpolicy.algorithms import node_affinity, toleration
from koordpolicy.cluster.nodes import NodeView, taints_of
from koordpolicy.cluster.pods import PodView
from koordpolicy.scheduler.plugins.base import (
    Parameters,
    Scores,
    Verdicts,
    one_reason,
    refuses_none,
    the_same_for_all,
)


def node_unschedulable(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Cordoned nodes."""
    tolerated = toleration.tolerated(pod.placement.tolerations, toleration.CORDON)
    cordoned = None if tolerated else nodes.flagged("unschedulable")
    if cordoned is None:
        return refuses_none((toleration.CORDONED,), nodes.count)
    return one_reason(cordoned, toleration.CORDONED)


NODE_NAME_MISMATCH: Final = "node(s) didn't match the requested node name"


def node_name(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes other than the one that the pod names."""
    wanted = pod.pod.node_name
    if not wanted:
        return refuses_none((NODE_NAME_MISMATCH,), nodes.count)
    return one_reason(nodes.names() != nodes.code(wanted), NODE_NAME_MISMATCH)


def taint_toleration(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes with taints that the pod does not tolerate. Each set of taints is looked at once."""
    if not nodes.tainted:
        return refuses_none((toleration.UNTOLERATED,), nodes.count)
    codes = nodes.taints()
    refused = np.zeros(nodes.count, np.bool_)
    for code in nodes.tainted:
        if not toleration.tolerates_all(pod.placement.tolerations, taints_of(nodes.text(code))):
            refused |= codes == code
    return one_reason(refused, toleration.UNTOLERATED)


def required_affinity(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes that have not what the pod's selector and affinity require."""
    placement = pod.placement
    if not placement.node_selector and placement.required is None:
        return refuses_none((node_affinity.MISMATCH,), nodes.count)
    return one_reason(~node_affinity.matches_all(placement, nodes), node_affinity.MISMATCH)


def avoided_taints(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Scores:
    """How many taints of each node the pod would rather avoid."""
    if not nodes.tainted:
        return the_same_for_all(nodes.count)
    codes = nodes.taints()
    counts = np.zeros(nodes.count, np.int64)
    for code in nodes.tainted:
        counts[codes == code] = toleration.avoided(pod.placement.tolerations, taints_of(nodes.text(code)))
    return counts


def preferred_affinity(pod: PodView, nodes: NodeView, _parameters: Parameters) -> "Scores | None":
    """The weights of the pod's wishes that each node fulfils."""
    preferred = pod.placement.preferred
    return node_affinity.preference_all(preferred, nodes) if preferred else None
