"""When pods are evicted from a node, which ones, and how many."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DURATION, DYN, INT, PERCENT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_NODE = frozenset({"node", "now"})
_SWITCH = Slot(BOOL, "Whether pods are evicted for this reason.", roots=_NODE)
_CANDIDATES = Slot(BOOL, "Whether a pod may be evicted for this reason.")
_ORDER = Slot(
    DYN,
    "Sort keys, the first deciding first; the pod with the smallest keys goes first.",
    combine=Combine.ORDER,
    many=True,
)
_PRIORITY = Slot(INT, "Highest priority of a pod that may be evicted for this reason.", roots=_NODE)


class EvictionByClass(PolicyModel):
    """Best-effort pods go when the node runs short."""

    enabled: Annotated[Value, _SWITCH] = None
    candidates: Annotated[Value, _CANDIDATES] = None
    order: Annotated[Value, _ORDER] = None


class EvictionByPriority(PolicyModel):
    """Pods go by priority when the node runs short; none where no priority is said."""

    enabled: Annotated[Value, _SWITCH] = None
    highest_priority: Annotated[Value, _PRIORITY] = None
    candidates: Annotated[Value, _CANDIDATES] = None
    order: Annotated[Value, _ORDER] = None


class EvictionByRequests(PolicyModel):
    """Pods go when more is requested of a resource than the node offers, whatever is used."""

    enabled: Annotated[Value, _SWITCH] = None
    threshold: Annotated[
        Value,
        Slot(PERCENT, "Requests beyond which pods go, as a share of what the node offers.", roots=_NODE),
    ] = None
    lower: Annotated[
        Value, Slot(PERCENT, "Requests down to which they go, as a share of what it offers.", roots=_NODE)
    ] = None
    highest_priority: Annotated[Value, _PRIORITY] = None
    candidates: Annotated[Value, _CANDIDATES] = None
    order: Annotated[Value, _ORDER] = None


class EvictionConduct(PolicyModel):
    """How evictions are carried out."""

    by: Annotated[
        Value,
        Slot(
            STRING,
            "`Eviction` asks the API server, which heeds disruption budgets; `Stop` asks the processes of its containers to "
            "end, and ends them after the pod's grace period (ten minutes at most); what the kubelet then starts again is its business. "
            "`EvictionOrStop` does that where the API server is out of reach.",
            choices=("Eviction", "Stop", "EvictionOrStop"),
            roots=_NODE,
            default="Eviction",
        ),
    ] = None
    most_at_once: Annotated[
        Value, Slot(INT, "Pods that go in one round at most.", minimum=1, maximum=1_000, roots=_NODE)
    ] = None
    most_per_hour: Annotated[
        Value, Slot(INT, "Pods that go within an hour at most.", minimum=1, maximum=100_000, roots=_NODE)
    ] = None
    stale_after: Annotated[
        Value,
        Slot(DURATION, "Age of measurements beyond which nothing is evicted.", roots=_NODE, default="2s"),
    ] = None
    expected_within: Annotated[
        Value,
        Slot(
            DURATION,
            "How long a pod that was evicted counts as going while it is still there.",
            roots=_NODE,
            default="2m",
        ),
    ] = None


class MemoryEvictionSpec(PolicySpec):
    """When a node runs short of memory, and which pods give it back."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether pods are evicted for memory at all.", roots=_NODE, default=True)
    ] = None
    threshold: Annotated[
        Value, Slot(PERCENT, "Use of the node's memory from which pods are evicted.", roots=_NODE)
    ] = None
    lower: Annotated[
        Value,
        Slot(
            PERCENT,
            "Use of the node's memory down to which they are evicted; without it 2 percent below the threshold.",
            roots=_NODE,
        ),
    ] = None
    best_effort: Given[EvictionByClass] = None
    """Best-effort pods, when memory is short."""
    by_priority: Given[EvictionByPriority] = None
    """Pods by priority, when memory is short."""
    by_requests: Given[EvictionByRequests] = None
    """Pods by priority, when more memory is requested than there is."""
    conduct: Given[EvictionConduct] = None
    """How evictions are carried out."""
    cooldown: Annotated[
        Value, Slot(DURATION, "How long nothing is evicted after an eviction.", roots=_NODE)
    ] = None
    interval: Annotated[Value, Slot(DURATION, "How often it is decided.", roots=_NODE)] = None


class Satisfaction(EvictionByClass):
    """Best-effort pods go when they get too little of the CPU that they request."""

    threshold: Annotated[
        Value,
        Slot(PERCENT, "CPU that they get, as a share of their requests, below which they go.", roots=_NODE),
    ] = None
    upper: Annotated[
        Value,
        Slot(PERCENT, "CPU that they get, as a share of their requests, up to which they go.", roots=_NODE),
    ] = None
    usage: Annotated[
        Value,
        Slot(
            PERCENT,
            "CPU that they must use of what they get before they go, 90 percent where nothing says it: work that waits for "
            "nothing does not suffer.",
            roots=_NODE,
        ),
    ] = None
    measured: Annotated[
        Value,
        Slot(
            STRING,
            "What they get: the `RealLimit` that suppression leaves, or the batch CPU that is `Allocatable`.",
            choices=("RealLimit", "Allocatable"),
            roots=_NODE,
        ),
    ] = None


class CPUEvictionByPriority(EvictionByPriority):
    """Pods go by priority when the node's CPU is short; none where no threshold or priority is said."""

    threshold: Annotated[
        Value, Slot(PERCENT, "Use of the node's CPU from which pods are evicted.", roots=_NODE)
    ] = None
    lower: Annotated[
        Value,
        Slot(
            PERCENT,
            "Use of the node's CPU down to which they are evicted; without it 2 percent below the threshold.",
            roots=_NODE,
        ),
    ] = None


class CPUEvictionSpec(PolicySpec):
    """When a node runs short of CPU, and which pods give it back."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether pods are evicted for CPU at all.", roots=_NODE, default=True)
    ] = None
    window: Annotated[
        Value, Slot(DURATION, "Over what time use of CPU is averaged; at least one measurement.", roots=_NODE)
    ] = None
    best_effort: Given[Satisfaction] = None
    """Best-effort pods that get too little CPU for what they request."""
    by_priority: Given[CPUEvictionByPriority] = None
    """Pods by priority, when CPU is short."""
    by_requests: Given[EvictionByRequests] = None
    """Pods by priority, when more CPU is requested than there is."""
    conduct: Given[EvictionConduct] = None
    """How evictions are carried out."""
    cooldown: Annotated[
        Value, Slot(DURATION, "How long nothing is evicted after an eviction.", roots=_NODE)
    ] = None
    interval: Annotated[Value, Slot(DURATION, "How often it is decided.", roots=_NODE)] = None
