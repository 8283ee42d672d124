"""What an agent says of the policies that it runs."""

from collections.abc import Mapping

from koordpolicy.model.agent_runs import AgentRuns
from koordpolicy.model.policy_revision import InstanceState
from koordpolicy.runtime.policies.gating import RolloutStage
from koordpolicy.runtime.policies.live import LivePolicies


def runs_of(live: LivePolicies, node: str, labels: Mapping[str, str]) -> AgentRuns:
    """What decides about a node with these labels, and what becomes of newer revisions there."""
    active, candidate, stage, rejected = live.active, live.candidate, live.stage, live.rejected
    return AgentRuns(
        "" if active is None else active.revision.name,
        "" if active is None else active.revision.digest,
        "" if candidate is None else candidate.revision.name,
        "" if candidate is None or stage is None else str(_state(stage, node, labels)),
        "" if rejected is None else rejected.revision.name,
        "" if rejected is None else str(rejected.reason),
        "" if rejected is None else rejected.message,
        live.origin,
    )


def _state(stage: RolloutStage, node: str, labels: Mapping[str, str]) -> InstanceState:
    """Whether a candidate decides about the node, as `LivePolicies.graph_for` finds."""
    ahead = stage.nodes is not None and stage.nodes(node, labels)
    return InstanceState.CANARY if ahead else InstanceState.SHADOW
