"""What policy says of CPUs and NUMA zones to the scheduler: what a pod wants of them, and what holds on a node."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.cpu_accumulator import BindPolicy, CPUAllocateStrategy, CPUExclusive
from koordpolicy.algorithms.cpu_binding import NodeRules, PodNeeds, positive
from koordpolicy.algorithms.fit_score import Strategy
from koordpolicy.algorithms.numa_merge import Exclusive, NUMAPolicy
from koordpolicy.algorithms.zone_allocation import ZoneRules
from koordpolicy.cluster.memoized import MemoizedDecision
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.cpu_topology import NO_SPEC, RESERVED_BY, NodeCPUs, ResourceSpec, read_resource_spec
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import CPU, NUMA_TOPOLOGY_SPEC, RESOURCE_SPEC
from koordpolicy.model.reading import Amounts, ObjectError

KIND: Final = "CPUTopology"
NONE: Final = "None"

_OWNS: Final = "owns"
_GUARDED: Final = "knownNodesOnly"
_OF_PODS: Final = (_OWNS, _GUARDED, "binding", "required", "exclusive", "alignment", "apart")
_OF_NODES: Final = ("binding", "alignment", "strategy", "split", "reserved", "amplification")


class CPUPolicy:
    """The CPUTopology documents of one revision."""

    __slots__ = ("_latest", "_nodes", "_owns", "_pods", "guards", "scoring")

    def __init__(self, graph: RuleGraph) -> None:
        pods = {field: prepared(graph, f"{KIND}.pods.{field}") for field in _OF_PODS}
        nodes = {field: prepared(graph, f"{KIND}.nodes.{field}") for field in _OF_NODES}

        def values(decisions: Mapping[str, Any]) -> MemoizedDecision:
            facts = frozenset().union(*(one.facts for one in decisions.values()))
            return MemoizedDecision(
                lambda records: {field: one.value(records) for field, one in decisions.items()}, facts
            )

        self._pods: Final = MemoizedDecision(
            lambda records: _wanted({field: one.value(records) for field, one in pods.items()}),
            frozenset().union(*(one.facts for one in pods.values())),
        )
        self._nodes: Final = values(nodes)
        self._owns: Final = MemoizedDecision(pods[_OWNS].value, pods[_OWNS].facts)
        self.guards: Final = pods[_GUARDED].program is not None or pods[_GUARDED].constant is not False
        """Whether any pod may be kept from nodes of whose CPUs nobody tells."""
        self._latest: tuple[PodView, PodNeeds] | None = None
        about = graph.about(KIND, "")
        self.scoring: Final = ZoneRules(
            Strategy(about.value("scoring.strategy") or Strategy.LEAST_ALLOCATED),
            {name: weight for name, weight in (about.value("scoring.weights") or {}).items() if weight > 0},
        )

    def owns(self, pod: Pod, facts: Record) -> bool:
        """Whether a pod gets CPUs of its own, if it asks for any; also where that cannot be said: whoever decides will say what is wrong."""
        try:
            return self._owns.value({"pod": facts, "resourceSpec": _said_by(pod)}) is True
        except (ObjectError, CelError):
            return True

    def may_own(self, view: PodView, request: Amounts) -> bool:
        """Whether a pod that is on its node may have CPUs of its own there, whatever the node says.

        What it says of how it wants them does not hinder where it is unreadable, nor help: the class decides.
        """
        try:
            return self.needs(view, request).binds
        except ObjectError:
            said = _SAYS_NOTHING
        except CelError:
            return True
        try:
            return self._owns.value({"pod": view.facts, "resourceSpec": said}) is True
        except CelError:
            return True

    def needs(self, view: PodView, request: Amounts) -> PodNeeds:
        """What a pod wants. Raises ObjectError for annotations that cannot be read, CelError."""
        latest = self._latest
        if latest is not None and latest[0] is view:
            return latest[1]
        owns, *how = self._pods.value({"pod": view.facts, "resourceSpec": _said_by(view.pod)})
        milli = request.get(CPU, 0)
        found = PodNeeds(milli, positive(request), owns and milli > 0, *how)
        self._latest = view, found
        return found

    def rules(self, node: Record, topology: NodeCPUs) -> tuple[NodeRules, frozenset[str]]:
        """What holds on a node, and whose CPUs are given to nobody. What policy cannot say counts as nothing."""
        records: Records = {"node": node, "topology": topology_facts(topology)}
        try:
            said = self._nodes.value(records)
        except CelError:
            return NodeRules(), frozenset(RESERVED_BY)
        binding, alignment = said["binding"], said["alignment"]
        reserved = said["reserved"]
        rules = NodeRules(
            BindPolicy.NONE if binding in (None, NONE) else BindPolicy(binding),
            NUMAPolicy.NONE if alignment in (None, NONE) else NUMAPolicy(alignment),
            CPUAllocateStrategy(said["strategy"] or CPUAllocateStrategy.LEAST_ALLOCATED),
            float(said["amplification"] or 1.0),
            evenly=said["split"] != "InTurn",
        )
        return rules, frozenset(RESERVED_BY if reserved is None else reserved)


def _wanted(said: Mapping[str, Any]) -> "_Wanted":
    """What policy says of a pod, without its amounts."""
    binding, alignment, exclusive = said["binding"], said["alignment"], said["exclusive"]
    return (
        said["owns"] is True,
        BindPolicy.NONE if binding in (None, NONE) else BindPolicy(binding),
        said["required"] is True and binding not in (None, NONE),
        CPUExclusive.NONE if exclusive in (None, NONE) else CPUExclusive(exclusive),
        NUMAPolicy.NONE if alignment in (None, NONE) else NUMAPolicy(alignment),
        Exclusive.REQUIRED if said["apart"] is True else Exclusive.UNSET,
        said[_GUARDED] is not False,
    )


_Wanted = tuple[bool, BindPolicy, bool, CPUExclusive, NUMAPolicy, Exclusive, bool]


def _said_by(pod: Pod) -> Record:
    """What a pod says of CPUs and zones, as facts. Raises ObjectError."""
    annotations = pod.annotations
    spec = read_resource_spec(annotations) if annotations else NO_SPEC
    return _SAYS_NOTHING if spec is NO_SPEC else spec_facts(spec)


def says_how(view: PodView) -> bool:
    """Whether a pod says anything of how it wants CPUs or zones."""
    annotations = view.pod.annotations
    return bool(annotations) and (RESOURCE_SPEC in annotations or NUMA_TOPOLOGY_SPEC in annotations)


def spec_facts(spec: ResourceSpec) -> Record:
    """What a pod says of CPUs and zones, as facts."""
    return {
        "requiredBinding": spec.required_bind,
        "preferredBinding": spec.preferred_bind,
        "exclusive": spec.exclusive,
        "alignment": spec.numa_policy,
        "zoneExclusive": spec.numa_exclusive,
    }


_SAYS_NOTHING: Final = spec_facts(NO_SPEC)


def topology_facts(topology: NodeCPUs) -> Record:
    """What is said of a node's CPUs, as facts."""
    return {
        "cpus": len(topology.layout.cpus),
        "zones": len(topology.zones),
        "cpuManager": topology.cpu_manager,
        "fullPCPUsOnly": topology.full_pcpus_only,
        "policies": list(topology.policies),
    }
