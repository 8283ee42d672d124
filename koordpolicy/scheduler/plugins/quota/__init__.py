"""Elastic quotas: what pods of a quota may have together, as policy says of the tree that it stands in.

A pod that is not within its quota stays out of the queue (`gate`) until it is, or until it could make others of its quota go.
What quotas request, use and may use is kept by the cluster's state (`cluster/quotas.py`), where trials of preemption take
part in it. What is said of a refusal is made in `reasons`.
"""

from typing import Final

import numpy as np

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.quota_policy import QuotaPolicy
from koordpolicy.cluster.state import ClusterState
from koordpolicy.graph import RuleGraph
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, Plugin, Said
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.quota.gate import QuotaGate
from koordpolicy.scheduler.plugins.quota.reasons import why
from koordpolicy.scheduler.plugins.verdicts import Verdicts, refuses_none


def exceeds(pod: PodView, state: ClusterState, _said: Said | None = None) -> str | None:
    """Why a pod is not within its quota, as it stands in a trial, too; None where it is."""
    quotas = state.quotas
    if not quotas.active or quotas.certainly_within(pod):
        return None
    member = quotas.member_of(pod)
    found = None if member is None else quotas.excess(member)
    return None if member is None or found is None else why(quotas, member, found)


def within_quota(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """No node, where a pod is not within its quota: others of the quota could go from any."""
    reason = exceeds(pod, nodes.state)
    if reason is None:
        return refuses_none(("quota",), nodes.count)
    return Verdicts((reason,), np.ones((1, nodes.count), np.bool_), np.zeros(nodes.count, np.bool_))


def keep(state: ClusterState, graph: RuleGraph) -> None:
    """Have quotas kept as a revision says."""
    state.quotas.begin(QuotaPolicy(graph))


ELASTIC_QUOTA: Final = Plugin(
    filter=within_quota,
    helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE, Event.QUOTA_CHANGED},
    row_only=False,
    cache_key=exceeds,
    keeps=keep,
    state=QuotaGate,
    concerned=QuotaGate.concerned,
    gate=QuotaGate.gate,
    settle=QuotaGate.settle,
    status=QuotaGate.status,
)
