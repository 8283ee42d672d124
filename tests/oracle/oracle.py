"""Which nodes a pod may go to, filter by filter."""

from dataclasses import dataclass

from tests.oracle.cluster import Cluster, Obj, name
from tests.oracle.neighbours import affinity_refuses, spread_refuses
from tests.oracle.resources import ports, ports_conflict, shortages
from tests.oracle.selecting import affinity_matches, tolerates, untolerated
from tests.oracle.volumes import binding_refuses, limits_refuse, restrictions_refuse, zone_refuses

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Refusal:
    """The first filter that refuses a node, all its reasons, and whether fewer pods would not help."""

    filter: str
    reasons: frozenset[str]
    hopeless: bool


def feasible(cluster: Cluster, pod: Obj) -> set[str]:
    """The names of the nodes that a pod may go to."""
    return {node for node, refusal in refusals(cluster, pod).items() if refusal is None}


def refusals(cluster: Cluster, pod: Obj) -> dict[str, Refusal | None]:
    """For each node, what refuses it first."""
    return {name(node): _refusal(cluster, pod, node) for node in cluster.nodes}


def _refusal(cluster: Cluster, pod: Obj, node: Obj) -> Refusal | None:
    spec = pod["spec"]
    if node.get("spec", {}).get("unschedulable") and not tolerates(spec.get("tolerations") or [], _CORDON):
        return Refusal("NodeUnschedulable", frozenset({"node(s) were unschedulable"}), True)
    if spec.get("nodeName") not in (None, "", name(node)):
        reason = "node(s) didn't match the requested node name"
        return Refusal("NodeName", frozenset({reason}), True)
    if untolerated(spec, node):
        return Refusal("TaintToleration", frozenset({"node(s) had untolerated taint(s)"}), True)
    if not affinity_matches(spec, node):
        reason = "node(s) didn't match Pod's node affinity/selector"
        return Refusal("NodeAffinity", frozenset({reason}), True)
    others = cluster.pods_on(name(node))
    if any(ports_conflict(ports(pod), ports(other)) for other in others):
        reason = "node(s) didn't have free ports for the requested pod ports"
        return Refusal("NodePorts", frozenset({reason}), False)
    short = shortages(pod, node, others)
    if short:
        hopeless = any(never for _, never in short)
        return Refusal("NodeResourcesFit", frozenset(reason for reason, _ in short), hopeless)
    for filter_name, refuse in _FILTERS:
        found = refuse(cluster, pod, node)
        if found is not None:
            return Refusal(filter_name, frozenset({found[0]}), found[1])
    return None


_FILTERS = (
    ("VolumeRestrictions", restrictions_refuse),
    ("NodeVolumeLimits", limits_refuse),
    ("VolumeBinding", binding_refuses),
    ("VolumeZone", zone_refuses),
    ("PodTopologySpread", spread_refuses),
    ("InterPodAffinity", affinity_refuses),
)
