"""What is measured on nodes, and how often."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DURATION, INT, STRING, list_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value
from koordpolicy.model.policy_revision import MOST_LAGGING

_NODE = frozenset({"node", "now"})
_ALONE: frozenset[str] = frozenset()


class PodDiscovery(PolicyModel):
    """How the agent learns of the pods on its node."""

    every: Annotated[
        Value, Slot(DURATION, "How often the kubelet is asked for its pods.", roots=_NODE, default="10s")
    ] = None
    timeout: Annotated[
        Value, Slot(DURATION, "How long the kubelet may take to answer.", roots=_NODE, default="3s")
    ] = None
    notice_within: Annotated[
        Value,
        Slot(
            DURATION,
            "How often is looked for control groups of new pods, which are asked for at once.",
            roots=_NODE,
            default="500ms",
        ),
    ] = None
    stale_after: Annotated[
        Value,
        Slot(
            DURATION,
            "Time without an answer after which pods are asked of the other one, kubelet or API server, and nothing is "
            "evicted by what is known of them.",
            roots=_NODE,
            default="30s",
        ),
    ] = None


class PressureMeasuring(PolicyModel):
    """How it is measured what the tasks of pods wait for."""

    every: Annotated[
        Value,
        Slot(
            DURATION,
            "How often: the pressure of pods, and how long their tasks waited for a CPU.",
            roots=_NODE,
            default="10s",
        ),
    ] = None
    always: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether it is measured where no rule of Interference asks for it too, to be shown as metrics.",
            roots=_NODE,
            default=False,
        ),
    ] = None


class CPIMeasuring(PolicyModel):
    """How cycles and instructions of pods are counted."""

    every: Annotated[Value, Slot(DURATION, "How often they are counted.", roots=_NODE, default="60s")] = None
    window: Annotated[
        Value, Slot(DURATION, "For how long each time; `0s` for not at all.", roots=_NODE, default="10s")
    ] = None
    always: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether they are counted where no rule of Interference asks for it too, to be shown as metrics.",
            roots=_NODE,
            default=False,
        ),
    ] = None


class ColdMemoryMeasuring(PolicyModel):
    """How it is found out which memory nobody uses; that takes a kernel with kidled."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the kernel is to look for it: that takes some of its time, and is switched on in the kernel.",
            roots=_NODE,
            default=False,
        ),
    ] = None
    every: Annotated[
        Value, Slot(DURATION, "How often the agent reads what was found.", roots=_NODE, default="5s")
    ] = None
    scan_every: Annotated[
        Value, Slot(DURATION, "How often the kernel looks at each page.", roots=_NODE, default="5s")
    ] = None
    from_bucket: Annotated[
        Value,
        Slot(
            INT,
            "The first of the kernel's eight ranges of ages that counts as cold, from 0 for the youngest.",
            minimum=0,
            maximum=7,
            roots=_NODE,
            default=5,
        ),
    ] = None


class DeviceMeasuring(PolicyModel):
    """Which devices of the node its Device object tells of, and how often they are looked at."""

    gpus: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether GPUs and other accelerators are told of, and how much of them is used.",
            roots=_NODE,
            default=False,
        ),
    ] = None
    rdma: Annotated[
        Value,
        Slot(BOOL, "Whether RDMA cards and their virtual functions are told of.", roots=_NODE, default=False),
    ] = None
    every: Annotated[
        Value,
        Slot(
            DURATION,
            "How often is looked which there are, how they are and what is used.",
            roots=_NODE,
            default="3s",
        ),
    ] = None
    harmless_errors: Annotated[
        Value,
        Slot(
            list_of(INT),
            "Errors of NVIDIA's GPUs (Xid) that are a program's own: after them a GPU works as before.",
            roots=_NODE,
            default=[13, 31, 43, 45, 68],
        ),
    ] = None


class AgentSummary(PolicyModel):
    """How the manager adds up, in the status of PolicyRevision objects, which policies agents run. The same for all nodes."""

    every: Annotated[
        Value,
        Slot(
            DURATION,
            "How often agents are counted; written is what has changed.",
            roots=_ALONE,
            default="30s",
        ),
    ] = None
    silent_after: Annotated[
        Value,
        Slot(
            DURATION,
            "Time without a report after which what an agent said it runs counts no more.",
            roots=_ALONE,
            default="5m",
        ),
    ] = None
    most_named: Annotated[
        Value,
        Slot(
            INT,
            "How many of the agents that do not run a revision are named.",
            minimum=0,
            maximum=MOST_LAGGING,
            roots=_ALONE,
            default=20,
        ),
    ] = None


class MetricCollectionSpec(PolicySpec):
    """What a node's agent measures, and how often it reports."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the node has a NodeMetric object as policies say; otherwise it is left to others.",
            roots=_NODE,
            default=True,
        ),
    ] = None
    every: Annotated[
        Value, Slot(DURATION, "How often the agent reports, in whole seconds.", roots=_NODE, default="60s")
    ] = None
    averages_over: Annotated[
        Value, Slot(DURATION, "Window of averages, in whole seconds.", roots=_NODE, default="300s")
    ] = None
    percentiles_over: Annotated[
        Value,
        Slot(list_of(DURATION), "Windows of percentiles.", roots=_NODE, default=["5m", "10m", "30m"]),
    ] = None
    memory: Annotated[
        Value,
        Slot(
            STRING,
            "What counts as used memory in reports; where hot page cache is not known, without page cache.",
            choices=("usageWithoutPageCache", "usageWithHotPageCache", "usageWithPageCache"),
            roots=_NODE,
            default="usageWithoutPageCache",
        ),
    ] = None
    interval: Annotated[
        Value,
        Slot(
            DURATION,
            "How often use is measured: of the node, its zones, pods, containers and host applications.",
            roots=_NODE,
            default="1s",
        ),
    ] = None
    system_inputs_within: Annotated[
        Value,
        Slot(
            DURATION,
            "How old what was measured of the node and its pods may be to say what the system uses beside them.",
            roots=_NODE,
            default="10s",
        ),
    ] = None
    most_pods: Annotated[
        Value,
        Slot(
            INT,
            "Pods that are measured at most; of containers ten times as many.",
            minimum=1,
            maximum=10_000,
            roots=_NODE,
            default=1000,
        ),
    ] = None
    pods: Given[PodDiscovery] = None
    """How the agent learns of its pods."""
    pressure: Given[PressureMeasuring] = None
    """How it is measured what pods wait for; it is while there are rules of Interference."""
    cpi: Given[CPIMeasuring] = None
    """How cycles and instructions of pods are counted; they are while there are rules of Interference."""
    cold_memory: Given[ColdMemoryMeasuring] = None
    """How it is found out which memory nobody uses; `memory: usageWithHotPageCache` needs it."""
    devices: Given[DeviceMeasuring] = None
    """Which devices of the node its Device object tells of."""
    summary: Given[AgentSummary] = None
    """How the manager adds up which policies agents run."""
