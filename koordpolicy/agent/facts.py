"""The fact record of the agent's own node."""

from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record


def agent_record(graph: RuleGraph, suppression: CPUSuppression, sight: NodeSight, now: int) -> Record:
    """All facts of the node; `now` in nanoseconds since 1970. The sight's metric is what the agent measured.

    Whether one quota holds back all best-effort work is policy's own answer; where it cannot be told, the
    fact is missing, and rules that need it fail instead of guessing.
    """
    record = node_record(sight, graph.catalogue, TIMES, now)
    try:
        return {**record, "suppression.byQuota": suppression.by_quota(record, now)}
    except CelError:
        return record
