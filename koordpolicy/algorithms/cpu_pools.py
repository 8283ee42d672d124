"""Which CPUs a container runs on: its own ones, or pools of CPUs that containers share.

Lists of CPUs are texts as the kernel takes them, and are joined as they stand.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from koordpolicy.model.cpuset import cpuset_text


class CPUChoice(StrEnum):
    """Which CPUs a container runs on, as policy says it."""

    OWNED = "Owned"
    """Those that the scheduler gave to its pod."""
    SHARED_OF_ZONES = "SharedOfZones"
    BEST_EFFORT_OF_ZONES = "BestEffortOfZones"
    SHARED = "Shared"
    SYSTEM = "System"
    """Those that the node keeps for itself."""
    INHERITED = "Inherited"
    """Whatever its parents have: best-effort work is moved as a whole."""
    UNTOUCHED = "Untouched"
    """Where the kubelet has put it."""


@dataclass(frozen=True, slots=True)
class CPUPools:
    """The CPUs of a node that are shared, by NUMA node, and those that best-effort work may use; `system` are its own."""

    shared: Mapping[int, str] = field(default_factory=dict)
    best_effort: Mapping[int, str] = field(default_factory=dict)
    system: str = ""


def chosen_cpus(choice: CPUChoice, pools: CPUPools, owned: str, zones: Sequence[int]) -> str | None:
    """The CPUs of a choice: empty for those of its parents, None to leave a container where it is.

    `owned` are the pod's own CPUs, `zones` the NUMA nodes that it was allocated to.
    """
    match choice:
        case CPUChoice.OWNED:
            return owned
        case CPUChoice.SHARED_OF_ZONES:
            return joined(pools.shared, zones)
        case CPUChoice.BEST_EFFORT_OF_ZONES:
            return joined(pools.best_effort, zones)
        case CPUChoice.SHARED:
            return joined(pools.shared, pools.shared)
        case CPUChoice.SYSTEM:
            return pools.system
        case CPUChoice.INHERITED:
            return ""
    return None


def joined(pools: Mapping[int, str], nodes: Iterable[int]) -> str:
    """The CPUs of some NUMA nodes, in their order; what is not there has none."""
    return ",".join(pools[node] for node in nodes if pools.get(node))


def pools_of(
    nodes: Mapping[int, Iterable[int]],
    owned: Iterable[int],
    exclusive: Iterable[int],
    kept: Iterable[int],
    system: str = "",
) -> CPUPools:
    """The pools of a node, from its CPUs by NUMA node.

    `owned` are all CPUs that pods have for themselves, `exclusive` those of them that nobody else may use at all, `kept`
    what the node reserves.
    """
    taken, alone = frozenset(owned) | frozenset(kept), frozenset(exclusive) | frozenset(kept)
    return CPUPools(
        {node: cpuset_text(frozenset(cpus) - taken) for node, cpus in sorted(nodes.items())},
        {node: cpuset_text(frozenset(cpus) - alone) for node, cpus in sorted(nodes.items())},
        system,
    )
