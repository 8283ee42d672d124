"""The fact record of the agent's own node."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.records import PodRecords
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What the node itself says of its CPUs: the kubelet's policy, those that are the system's own, and those that the kubelet
    has given to pods by itself, by UID.
    """

    cpu_manager: str = "none"
    system_cpus: str = ""
    kubelet_cpus: Mapping[str, frozenset[int]] = field(default_factory=dict)


_USUAL = NodeSettings()


def agent_record(
    graph: RuleGraph,
    suppression: CPUSuppression,
    sight: NodeSight,
    now: int,
    settings: NodeSettings = _USUAL,
    known: PodRecords | None = None,
) -> Record:
    """All facts of the node; `now` in nanoseconds since 1970. The sight's metric is what the agent measured, `known` are records of pods
    that are not to be made anew.

    Whether one quota holds back all best-effort work is policy's own answer; where it cannot be told, the
    fact is missing, and rules that need it fail instead of guessing.
    """
    record = node_record(sight, graph.catalogue, TIMES, now, known)
    record["kubelet.cpuManager"] = settings.cpu_manager
    record["system.hasCPUs"] = bool(settings.system_cpus)
    try:
        return {**record, "suppression.byQuota": suppression.by_quota(record, now)}
    except CelError:
        return record
