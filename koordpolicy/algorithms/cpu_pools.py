"""Which CPUs a container of a class runs on: its own ones, or pools of CPUs that containers share.

Lists of CPUs are texts as the kernel takes them, and are joined as they stand.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from koordpolicy.model.cpuset import cpuset_text


class Pool(StrEnum):
    """Where a container runs for which the scheduler has said nothing."""

    SHARED = "Shared"
    """On the CPUs that nobody has alone."""
    SYSTEM = "System"
    """On the CPUs that the node keeps for itself; shared ones where it keeps none."""
    BEST_EFFORT = "BestEffort"
    """Where its parents may: best-effort work is moved as a whole."""
    UNTOUCHED = "Untouched"
    """Where the kubelet has put it."""


@dataclass(frozen=True, slots=True)
class CPUPools:
    """The CPUs of a node that are shared, by NUMA node, and those that best-effort work may use; `system` are its own."""

    shared: Mapping[int, str] = field(default_factory=dict)
    best_effort: Mapping[int, str] = field(default_factory=dict)
    system: str = ""

    def all_shared(self) -> str:
        """All shared CPUs."""
        return joined(self.shared, self.shared)


def joined(pools: Mapping[int, str], nodes: Iterable[int]) -> str:
    """The CPUs of some NUMA nodes, in their order; what is not there has none."""
    return ",".join(pools[node] for node in nodes if pools.get(node))


def container_cpus(
    pool: Pool, pools: CPUPools, *, owned: str, zones: Sequence[int], pinned: bool
) -> str | None:
    """The CPUs of a container, empty to clear those that its parents do not have, None to leave it where it is.

    `owned` are CPUs that the scheduler allotted to its pod, `zones` the NUMA nodes, if any; `pinned` says whether
    best-effort pods keep to theirs.
    """
    if owned:
        return owned
    if zones and (pool is not Pool.BEST_EFFORT or pinned):
        return joined(pools.best_effort if pool is Pool.BEST_EFFORT else pools.shared, zones)
    if pool is Pool.SYSTEM and pools.system:
        return pools.system
    if pool is Pool.BEST_EFFORT:
        return ""
    return None if pool is Pool.UNTOUCHED else pools.all_shared()


def pools_of(
    nodes: Mapping[int, Iterable[int]],
    owned: Iterable[int],
    exclusive: Iterable[int],
    kept: Iterable[int],
    system: str,
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
