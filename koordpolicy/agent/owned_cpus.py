"""Which CPUs of a node count as those of single pods: what pods' annotations say, as far as policy lets their classes have any.

Whoever may create pods may write that annotation. So it is believed only of pods whose QoS class is bound to CPUs (`cpuBinding`
of QoSClass), never of best-effort ones, and whatever all of them say together, pods that share CPUs have some.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.strategies.shared_pool import BOUND, EXCLUSIVE, SHARED, cpu_bindings
from koordpolicy.graph import RuleGraph
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.model.pod import Pod, owned_cpus
from koordpolicy.model.protocol import QOS_BEST_EFFORT, QOS_CLASS, RESOURCE_STATUS
from koordpolicy.model.reading import ObjectError

IGNORED: Final = "OwnedCPUsIgnored"
"""The reason of the Event of a pod that may not have the CPUs that its annotation says."""
NONE_SHARED: Final = "NoSharedCPUs"
"""The reason of the Event of a node all of whose CPUs are those of single pods."""
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class CPUNotice:
    """Something about CPUs of their own that people should know: the reason of an Event, and what it says."""

    reason: str
    words: str
    pod: Pod | None = None
    """Whom it is about; None for the node."""

    def regarding(self, node: str) -> Mapping[str, Any]:
        """What the Event is about."""
        if self.pod is None:
            return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "uid": node}}
        named = {"namespace": self.pod.namespace, "name": self.pod.name, "uid": self.pod.uid}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": named}


@dataclass(frozen=True, slots=True)
class OwnedCPUs:
    """The CPUs of single pods: `exclusive` ones that nobody else uses, `bound` ones that lower classes may use, too.

    `unshared` are those that the pool of shared CPUs goes without. `claims` are by what they are about.
    """

    exclusive: frozenset[int] = frozenset()
    bound: frozenset[int] = frozenset()
    unshared: frozenset[int] = frozenset()
    claims: Mapping[str, CPUNotice] = field(default_factory=dict)


def owned_cpus_of(graph: RuleGraph, pods: Mapping[str, NodePod], free: frozenset[int]) -> OwnedCPUs:
    """Those of the pods of a node with these CPUs, without what it reserves and what its kubelet has given away.

    Where pods own all of them, the others run on the bound ones, as best-effort work does; where all are exclusive, on any.
    """
    cpus: dict[str, frozenset[int]] = {EXCLUSIVE: frozenset(), BOUND: frozenset()}
    owners: list[str] = []
    claims: dict[str, CPUNotice] = {}
    for one in pods.values():
        said = _said_by(one.pod)
        if not said:
            continue
        binding, name = binding_of(graph, one.pod), f"{one.pod.namespace}/{one.pod.name}"
        if binding in cpus:
            cpus[binding] |= said
            owners.append(name)
        else:
            claims[name] = CPUNotice(IGNORED, _ignored(one.pod, said), one.pod)
    exclusive, bound = cpus[EXCLUSIVE], cpus[BOUND]
    heeded = exclusive if free - exclusive else frozenset()
    unshared = heeded | bound if free - heeded - bound else heeded
    if free and unshared != exclusive | bound:
        claims["shared"] = CPUNotice(NONE_SHARED, _none_shared(owners, free - unshared))
    return OwnedCPUs(heeded, bound, unshared, claims)


def binding_of(graph: RuleGraph, pod: Pod) -> str:
    """How policy binds a pod to CPUs by its class. No scheduler gives CPUs to a pod that requests none."""
    if pod.kubernetes_qos == QOS_BEST_EFFORT:
        return "None"
    qos = graph.catalogue.effective_qos(pod.labels.get(QOS_CLASS), pod.kubernetes_qos)
    return cpu_bindings(graph).get(qos, SHARED)


def _said_by(pod: Pod) -> frozenset[int]:
    try:
        return owned_cpus(pod.annotations)
    except ObjectError:
        return frozenset()  # an unreadable allocation gives no CPUs


def _ignored(pod: Pod, said: frozenset[int]) -> str:
    return (
        f"{pod.namespace}/{pod.name} says by the annotation {RESOURCE_STATUS} that CPUs {cpuset_text(said)[:100]} are its own, and others "
        "go on using them: pods of its class own none (cpuBinding of QoSClass), nor do those without CPU requests"
    )


def _none_shared(owners: list[str], left: frozenset[int]) -> str:
    more = f" and {len(owners) - _MOST_NAMED} more" if len(owners) > _MOST_NAMED else ""
    return (
        f"by the annotation {RESOURCE_STATUS}, {', '.join(sorted(owners)[:_MOST_NAMED])}{more} own all CPUs that pods could share: "
        f"the others use {cpuset_text(left)} nevertheless"
    )
