"""What the YARN operator hears of a cluster: nodes and pods, and of all else what policies read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.cluster.watch import ClusterWatch
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.resources import Resource
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.model.node import Node
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.yarn_operator.plans import KIND

_FACTS: Final[Mapping[Resource, tuple[str, ...]]] = MappingProxyType(
    {
        resources.NODE_METRICS: (
            "node.usage",
            "node.metric",
            "node.prediction",
            "node.hostApplications",
            "node.resources.usage",
            "node.pods",  # those that only a report knows are among them
        ),
        resources.NODE_RESOURCE_TOPOLOGIES: ("node.zones", "node.cpuInfo"),
        resources.DEVICES: ("node.devices", "node.deviceLabels"),
    }
)
"""Which facts follow from objects that few policies ask about; each stands for all that begin with it."""

ON_DEMAND: Final = frozenset(_FACTS)
WATCHED: Final = frozenset({resources.NODES, resources.PODS}) | ON_DEMAND


def read_resources(graph: RuleGraph) -> frozenset[Resource]:
    """Those of `ON_DEMAND` that decisions of a revision read."""

    def found() -> frozenset[Resource]:
        names = [str(key) for key in graph.decisions if key.kind == KIND]
        read = {fact for name in names for fact in facts_of(graph.expression(name))}
        if ("node", "") in read:
            return ON_DEMAND  # as a whole
        paths = {f"{record}.{path}" for record, path in read}
        return frozenset(
            resource for resource, facts in _FACTS.items() if any(path.startswith(facts) for path in paths)
        )

    return graph.once(("resources read", KIND), found)


class PolicyReads:
    """Has a watch follow what policies read, whichever revision decides."""

    def __init__(self, watch: ClusterWatch, live: LivePolicies) -> None:
        self._watch = watch
        self._live = live

    def follow(self) -> None:
        """Follow what the active revision reads, and one that a rollout lets go ahead on some nodes."""
        live = self._live
        for graph in (live.graph, *(() if live.candidate is None else (live.candidate.graph,))):
            self._watch.want(read_resources(graph))

    async def known(self) -> None:
        """Wait until all of it is known."""
        self.follow()
        await self._watch.synced()

    def knows(self, node: Node) -> bool:
        """Whether that holds of the revision that decides about a node now."""
        return self._watch.knows(read_resources(self._live.graph_for(node.name, node.labels)))
