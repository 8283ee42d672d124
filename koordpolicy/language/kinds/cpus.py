"""The kind on CPUs and NUMA zones: which pods get CPUs of their own, how these lie, and which zones pods are kept in."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DOUBLE, INT, STRING, list_of, map_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value

_POD = frozenset({"pod", "resourceSpec"})
_NODE = frozenset({"node", "topology"})
_NOWHERE: frozenset[str] = frozenset()

NONE = "None"
"""What a choice is called that changes nothing."""
BINDINGS = (NONE, "FullPCPUs", "SpreadByPCPUs")
ALIGNMENTS = (NONE, "BestEffort", "Restricted", "SingleNUMANode")


class PodCPUs(PolicyModel):
    """What a pod wants of CPUs and zones, whichever its node."""

    owns: Annotated[
        Value,
        Slot(BOOL, "Whether a pod gets CPUs of its own by its own request.", roots=_POD, default=False),
    ] = None
    known_nodes_only: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether such a pod goes only to nodes of whose CPUs an object tells. Otherwise others take it, too, and leave its CPUs "
            "to their kubelets.",
            roots=_POD,
            default=True,
        ),
    ] = None
    binding: Annotated[
        Value,
        Slot(
            STRING,
            "How its CPUs lie on cores: whole cores (`FullPCPUs`), or one CPU a core first (`SpreadByPCPUs`).",
            choices=BINDINGS,
            roots=_POD,
            default=NONE,
        ),
    ] = None
    required: Annotated[
        Value,
        Slot(BOOL, "Whether they have to lie so; otherwise it is a wish.", roots=_POD, default=False),
    ] = None
    exclusive: Annotated[
        Value,
        Slot(
            STRING,
            "From whom its CPUs keep away if they can, of pods that want the same: on a core (`PCPULevel`), or in a zone "
            "(`NUMANodeLevel`).",
            choices=(NONE, "PCPULevel", "NUMANodeLevel"),
            roots=_POD,
            default=NONE,
        ),
    ] = None
    alignment: Annotated[
        Value,
        Slot(
            STRING,
            "Which NUMA zones a pod may be spread over; a node that says something else does not take it.",
            choices=ALIGNMENTS,
            roots=_POD,
            default=NONE,
        ),
    ] = None
    apart: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether it keeps away, within one zone, from pods across several, and the other way round.",
            roots=_POD,
            default=False,
        ),
    ] = None


class NodeCPURules(PolicyModel):
    """What holds on a node for all its pods."""

    binding: Annotated[
        Value,
        Slot(
            STRING,
            "How the CPUs of all pods lie, which then all get their own; `None` leaves that to pods.",
            choices=BINDINGS,
            roots=_NODE,
            default=NONE,
        ),
    ] = None
    alignment: Annotated[
        Value,
        Slot(
            STRING,
            "Which zones pods may be spread over that say nothing of it.",
            choices=ALIGNMENTS,
            roots=_NODE,
            default=NONE,
        ),
    ] = None
    strategy: Annotated[
        Value,
        Slot(
            STRING,
            "Which zone, and socket, is taken from first: the one with most left (`LeastAllocated`, `DistributeEvenly`) or with "
            "least (`MostAllocated`).",
            choices=("LeastAllocated", "MostAllocated", "DistributeEvenly"),
            roots=_NODE,
            default="LeastAllocated",
        ),
    ] = None
    split: Annotated[
        Value,
        Slot(
            STRING,
            "How a pod lies across several zones: as much in each as there is (`Evenly`), or in one after the other (`InTurn`).",
            choices=("Evenly", "InTurn"),
            roots=_NODE,
            default="Evenly",
        ),
    ] = None
    reserved: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Whose CPUs are given to no pod: `KubeletPods` that the kubelet has bound itself, its own reserved ones (`Kubelet`), "
            "those of a `NodeReservation`, of what runs alone outside Kubernetes (`SystemQoS`).",
            choices=("KubeletPods", "Kubelet", "NodeReservation", "SystemQoS"),
            roots=_NODE,
            default=["KubeletPods", "Kubelet", "NodeReservation", "SystemQoS"],
        ),
    ] = None
    amplification: Annotated[
        Value,
        Slot(
            DOUBLE,
            "How many times over its CPU is sold: so much CPUs of their own cost pods. 1 and less change nothing.",
            roots=_NODE,
            default=1.0,
        ),
    ] = None


class ZoneScoring(PolicyModel):
    """Which zones of a node are better for a pod that several could take."""

    strategy: Annotated[
        Value,
        Slot(
            STRING,
            "`LeastAllocated` for emptier zones, `MostAllocated` for fuller ones.",
            choices=("LeastAllocated", "MostAllocated"),
            roots=_NOWHERE,
            default="LeastAllocated",
        ),
    ] = None
    weights: Annotated[
        Value,
        Slot(
            map_of(STRING, INT),
            "Weight of each resource.",
            roots=_NOWHERE,
            default={"cpu": 1, "memory": 1},
        ),
    ] = None


class CPUTopologySpec(PolicySpec):
    """How the scheduler gives pods CPUs of their own, and places in NUMA zones."""

    pods: Given[PodCPUs] = None
    """What pods want."""
    nodes: Given[NodeCPURules] = None
    """What nodes say."""
    scoring: Given[ZoneScoring] = None
    """Which zones are better."""
