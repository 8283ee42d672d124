"""Pods of gangs where nobody keeps them together: they are kept back, and told what to do, rather than placed in part.

That is so in a scheduler with `--shard`, none of which has all pods and nodes in its hands, and in an extender, which is asked
about one pod after the other by a scheduler that knows no gangs. Where policy switches the filter off, they are placed one by one.
"""

from typing import Final

from koordpolicy.algorithms.gang import gang_id
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.graph import RuleGraph
from koordpolicy.scheduler.plugins.base import Host, Plugin, Refusal
from koordpolicy.scheduler.plugins.gang.policy import GangPolicy
from koordpolicy.scheduler.plugins.gang.words import shown
from koordpolicy.scheduler.plugins.parameters import Parameters

SHARDS: Final = "no shard of the scheduler has all of its pods in hand; give them a schedulerName that a scheduler without --shard places"
EXTENDER: Final = (
    "kube-scheduler asks about one pod at a time; give them the schedulerName of a koordpolicy scheduler"
)
_OTHERWISE: Final = "or switch the profile's filter Coscheduling off, and they are placed one by one"


class GangsElsewhere:
    """Whose pods these are, by one revision after the other."""

    def __init__(self, why: str) -> None:
        self._why = why
        self._policy: GangPolicy | None = None

    def name_of(self, view: PodView, graph: RuleGraph, state: ClusterState, now: int) -> str:
        """The name of the gang that a pod belongs to; empty for none. `now` is in nanoseconds since 1970."""
        policy = self._policy
        if policy is None or policy.graph is not graph:
            policy = self._policy = GangPolicy(graph)
        if policy.by_pod_alone:
            return policy.gang_of_pod(view)
        return policy.gang_of(view, state.namespaces.get(view.pod.namespace, {}), now)

    def refusal(self, view: PodView, graph: RuleGraph, state: ClusterState, now: int) -> str | None:
        """Why a pod is not placed; None for one that is in no gang."""
        name = self.name_of(view, graph, state, now)
        if not name:
            return None
        gang = shown(gang_id((view.pod.namespace, name)))
        return f"gang {gang} cannot be placed as a whole here: {self._why}, {_OTHERWISE}"


class _InShards:
    """The state of the plugin."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._gangs = GangsElsewhere(SHARDS)

    def concerned(self, view: PodView) -> bool:
        """Whether a pod is in a gang."""
        host = self._host
        return bool(self._gangs.name_of(view, host.graph, host.cluster, host.now()))

    def gate(self, view: PodView, _parameters: Parameters) -> Refusal | None:
        """Why a pod is not tried."""
        host = self._host
        found = self._gangs.refusal(view, host.graph, host.cluster, host.now())
        return None if found is None else Refusal(found)


GANGS_IN_SHARDS: Final = Plugin(
    state=_InShards, helped_by=frozenset(), concerned=_InShards.concerned, gate=_InShards.gate
)
"""In place of what keeps gangs together, in a shard."""
GANGS_IN_EXTENDER: Final = Plugin(helped_by=frozenset())
"""The same in an extender, which asks `GangsElsewhere` itself."""
