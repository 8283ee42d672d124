"""CPUs of their own and NUMA zones: which nodes have room for what a pod wants of them, and which CPUs it gets, as the kind
CPUTopology says.

What is taken counts at once in `cluster/cpu_accounts.py`, where trials of preemption take part in it, and is written on the pod
with its binding: after a restart it is taken again from there.
"""

from typing import Final

from koordpolicy.cluster.cpu_policy import CPUPolicy
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.state import CPUS, ClusterState
from koordpolicy.graph import RuleGraph
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, Plugin
from koordpolicy.scheduler.plugins.numa.advice import zones_advice
from koordpolicy.scheduler.plugins.numa.claim import (
    adopt,
    concerned,
    give_back,
    said_on_pod,
    take,
    take_again,
)
from koordpolicy.scheduler.plugins.numa.filters import cpus_free, cpus_score, cpus_wanted, is_barred


def keep(state: ClusterState, graph: RuleGraph) -> None:
    """Have CPUs given out as a revision says."""
    state.cpus.begin(CPUPolicy(graph))


NODE_NUMA_RESOURCE: Final = Plugin(
    filter=cpus_free,
    score=cpus_score,
    node_facts=frozenset({"resources.allocatable", "resources.requested"}),
    pod_facts=frozenset({"resources.request"}),
    helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE, Event.CPUS_CHANGED},
    row_only=False,
    cache_key=cpus_wanted,
    ordinary_with=CPUS,
    keeps=keep,
    state=lambda host: host,
    concerned=concerned,
    reserve=take,
    undo=give_back,
    redo=take_again,
    adopt=adopt,
    annotates=said_on_pod,
    advice=zones_advice,
    bars=is_barred,
)
