"""Which CPUs a pod gets as its own: as near to each other as the node still allows.

A run narrows its scope step by step: one NUMA zone, one socket, whole sockets, then whatever is free. `FullPCPUs` takes whole
cores, `SpreadByPCPUs` one CPU a core first. Steps and orders are those of Koordinator's CPU accumulator, which takes one CPU more
than asked where an odd number of CPUs in whole cores is spread over three sockets.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from koordpolicy.model.cpu_layout import CPULayout

NOT_ENOUGH: Final = "not enough cpus available to satisfy request"


class BindPolicy(StrEnum):
    """How the CPUs of a pod lie on cores."""

    NONE = ""
    DEFAULT = "Default"
    FULL_PCPUS = "FullPCPUs"
    SPREAD_BY_PCPUS = "SpreadByPCPUs"
    CONSTRAINED_BURST = "ConstrainedBurst"


class CPUExclusive(StrEnum):
    """From whom a pod's CPUs keep away: from those with the same policy, on a core or in a zone."""

    NONE = ""
    PCPU_LEVEL = "PCPULevel"
    NUMA_NODE_LEVEL = "NUMANodeLevel"


class CPUAllocateStrategy(StrEnum):
    """Which zone or socket is tried first: the one with the least that is free, or with the most."""

    MOST_ALLOCATED = "MostAllocated"
    LEAST_ALLOCATED = "LeastAllocated"
    DISTRIBUTE_EVENLY = "DistributeEvenly"


class NotEnoughCPUs(Exception):
    """There are fewer CPUs than wanted, or none that lie as wanted."""


@dataclass(frozen=True, slots=True)
class WantedCPUs:
    """How many CPUs, and how they are to lie."""

    count: int
    bind: BindPolicy = BindPolicy.NONE
    exclusive: CPUExclusive = CPUExclusive.NONE
    strategy: CPUAllocateStrategy = CPUAllocateStrategy.LEAST_ALLOCATED


class HeldCPUs(NamedTuple):
    """What pods hold of a node's CPUs: cores and zones of those that keep others away, and how many pods share a CPU.

    `references` count only where CPUs may be shared.
    """

    cores: AbstractSet[int] = frozenset()
    zones: AbstractSet[int] = frozenset()
    references: Mapping[int, int] = MappingProxyType({})


def take_preferred(
    layout: CPULayout,
    available: frozenset[int],
    preferred: Collection[int],
    wanted: WantedCPUs,
    held: HeldCPUs,
) -> frozenset[int]:
    """CPUs for a pod, out of the preferred ones as far as those go. Raises NotEnoughCPUs."""
    first = available.intersection(preferred)
    if not first:
        return take(layout, available, wanted, held)
    count = min(wanted.count, len(first))
    taken = take(layout, first, _so_many(wanted, count), held)
    left = wanted.count - len(taken)
    return taken | take(layout, available - first, _so_many(wanted, left), held) if left > 0 else taken


def take(layout: CPULayout, available: frozenset[int], wanted: WantedCPUs, held: HeldCPUs) -> frozenset[int]:
    """CPUs for a pod. Raises NotEnoughCPUs."""
    if wanted.count < 1:
        return frozenset()
    if wanted.count > len(available):
        raise NotEnoughCPUs(NOT_ENOUGH)
    return _Run(layout, available, wanted, held).run()


def take_required(
    layout: CPULayout,
    available: frozenset[int],
    preferred: Collection[int],
    wanted: WantedCPUs,
    held: HeldCPUs,
    by_zone: Mapping[int, int] | None = None,
) -> frozenset[int]:
    """CPUs that lie exactly as the policy says; `by_zone`, if given, so many of each zone. Raises NotEnoughCPUs."""
    usable = fitting(layout, available, wanted.bind)
    if len(usable) < wanted.count:
        raise NotEnoughCPUs(NOT_ENOUGH)
    taken = take_by_zone(layout, usable, preferred, wanted, held, by_zone)
    cores = layout.cores(taken)
    whole = wanted.bind is BindPolicy.FULL_PCPUS and cores * layout.per_core != len(taken)
    if whole or (wanted.bind is BindPolicy.SPREAD_BY_PCPUS and cores != len(taken)):
        raise NotEnoughCPUs(f"insufficient CPUs to satisfy required cpu bind policy {wanted.bind}")
    return taken


def take_by_zone(
    layout: CPULayout,
    available: frozenset[int],
    preferred: Collection[int],
    wanted: WantedCPUs,
    held: HeldCPUs,
    by_zone: Mapping[int, int] | None,
) -> frozenset[int]:
    """CPUs for a pod; `by_zone`, if given, so many of each zone. Raises NotEnoughCPUs."""
    if by_zone is None:
        return take_preferred(layout, available, preferred, wanted, held)
    taken: frozenset[int] = frozenset()
    for zone, count in sorted(by_zone.items()):
        there = available & layout.zones.get(zone, frozenset())
        taken |= take_preferred(layout, there, preferred, _so_many(wanted, min(count, len(there))), held)
    if len(taken) != wanted.count:
        raise NotEnoughCPUs(NOT_ENOUGH)
    return taken


def fitting(layout: CPULayout, available: frozenset[int], bind: BindPolicy) -> frozenset[int]:
    """The CPUs that a pod may take which requires a policy."""
    if bind is BindPolicy.FULL_PCPUS:
        return layout.of_whole_cores(available)
    if bind is BindPolicy.SPREAD_BY_PCPUS:
        return layout.one_of_each_core(available)
    return available


def _so_many(wanted: WantedCPUs, count: int) -> WantedCPUs:
    return WantedCPUs(count, wanted.bind, wanted.exclusive, wanted.strategy)


def _grouped(cpus: Iterable[int], key: Mapping[int, int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for cpu in cpus:
        found.setdefault(key[cpu], []).append(cpu)
    return found


class _Run:
    """One run: CPUs are taken until there are enough."""

    def __init__(
        self, layout: CPULayout, available: frozenset[int], wanted: WantedCPUs, held: HeldCPUs
    ) -> None:
        self._layout, self._wanted, self._held = layout, wanted, held
        self._free = set(available)
        self._taken: list[int] = []
        self._least_first = wanted.strategy is CPUAllocateStrategy.MOST_ALLOCATED

    @property
    def _left(self) -> int:
        return self._wanted.count - len(self._taken)

    def run(self) -> frozenset[int]:
        """The CPUs. Raises NotEnoughCPUs."""
        layout = self._layout
        full = self._wanted.bind is BindPolicy.FULL_PCPUS
        done = (full or layout.per_core == 1) and self._by_cores()
        if not done and not full:
            done = self._by_cpus()
        if done or self._anywhere():
            return frozenset(self._taken)
        raise NotEnoughCPUs("failed to allocate cpus")

    # --- whole cores ------------------------------------------------------------------------------

    def _by_cores(self) -> bool:
        layout, count = self._layout, self._left
        if count <= layout.per_zone and any(
            self._first(self._zones_by_cores(apart=apart)) for apart in (True, False)
        ):
            return True
        sockets = [*self._by_free_cores(layout.socket_cores, lambda _socket: 0)]
        if count <= layout.per_socket and self._first(sockets):
            return True
        aside: list[list[int]] = []
        for cpus in sorted(sockets, key=len, reverse=True):
            if self._left >= len(cpus):
                self._take(cpus)
            else:
                aside.append(cpus)
        if self._left and self._left >= layout.per_core:
            self._by_single_cores(sorted(aside, key=len))
        return self._left <= 0

    def _by_single_cores(self, lists: Sequence[list[int]]) -> None:
        """Whole cores, one at a time."""
        size = self._layout.per_core
        for cpus in lists:
            for start in range(0, len(cpus), size):
                self._take(cpus[start : start + size])
                if self._left <= 0:
                    return
                if self._left < size:
                    break

    def _zones_by_cores(self, *, apart: bool) -> Iterable[list[int]]:
        layout = self._layout

        def beside(zone: int) -> int:
            return self._signed(len(self._free & layout.sockets[layout.socket_of_zone[zone]]))

        found = self._by_free_cores(layout.zone_cores, beside)
        if apart and self._wanted.exclusive is CPUExclusive.NUMA_NODE_LEVEL:
            return [cpus for cpus in found if self._layout.zone[cpus[0]] not in self._held.zones]
        return found

    def _by_free_cores(
        self, cores: Mapping[int, Sequence[tuple[int, ...]]], second: Callable[[int], int]
    ) -> Iterable[list[int]]:
        """The CPUs of the cores that are free as a whole, by zone or socket; made as far as somebody looks."""
        free = self._free.issuperset
        units = {unit: whole for unit, listed in cores.items() if (whole := [*filter(free, listed)])}
        ordered = sorted(units, key=lambda unit: (self._signed(len(units[unit])), second(unit), unit))
        if self._held.references:
            for listed in units.values():
                listed.sort(key=self._core_order)
        return ([*chain.from_iterable(units[unit])] for unit in ordered)

    def _core_order(self, cpus: Collection[int]) -> tuple[int, int]:
        return self._references(cpus), self._layout.core[next(iter(cpus))]

    # --- single CPUs ------------------------------------------------------------------------------

    def _by_cpus(self) -> bool:
        layout, count = self._layout, self._left
        if count <= layout.per_zone and any(
            self._first(map(self._spread, self._zones_by_cpus(apart=apart))) for apart in (True, False)
        ):
            return True
        return count <= layout.per_socket and any(
            self._first(map(self._spread, self._sockets_by_cpus(apart=apart))) for apart in (True, False)
        )

    def _zones_by_cpus(self, *, apart: bool) -> list[list[int]]:
        layout = self._layout
        free = self._unblocked(cores=apart, zones=apart)
        zones, sockets = _grouped(free, layout.zone), _grouped(free, layout.socket)
        ordered = sorted(
            zones,
            key=lambda zone: (
                self._signed(len(zones[zone])),
                self._signed(len(sockets[layout.socket_of_zone[zone]])),
                zone,
            ),
        )
        return [self._in_order(zones[zone], one_a_core=apart) for zone in ordered]

    def _sockets_by_cpus(self, *, apart: bool) -> list[list[int]]:
        sockets = _grouped(self._unblocked(cores=apart, zones=False), self._layout.socket)
        lists = {socket: self._in_order(cpus, one_a_core=apart) for socket, cpus in sockets.items()}
        ordered = sorted(lists, key=lambda socket: (self._signed(len(lists[socket])), socket))
        return [lists[socket] for socket in ordered]

    def _in_order(self, cpus: Iterable[int], *, one_a_core: bool) -> list[int]:
        ordered = sorted(cpus, key=self._cpu_order)
        if not one_a_core:
            return ordered
        first: dict[int, int] = {}
        for cpu in ordered:
            first.setdefault(self._layout.core[cpu], cpu)
        return list(first.values())

    # --- wherever some are free -------------------------------------------------------------------

    def _anywhere(self) -> bool:
        for apart in (True, False):
            for cpu in self._spread(self._all_free(apart=apart)):
                if self._left <= 0:
                    return True
                self._take((cpu,))
            if self._left <= 0:
                return True
        return False

    def _all_free(self, *, apart: bool) -> list[int]:
        layout, free = self._layout, self._unblocked(cores=apart, zones=apart)
        sockets, zones = _grouped(free, layout.socket), _grouped(free, layout.zone)
        taken = _grouped(self._taken, layout.socket)

        def order(cpus: list[int]) -> tuple[int, ...]:
            socket, zone = layout.socket[cpus[0]], layout.zone[cpus[0]]
            return (
                -len(taken.get(socket, ())),
                self._signed(len(sockets[socket])),
                self._signed(len(zones[zone])),
                len(cpus),
                socket,
                self._references(cpus),
                layout.core[cpus[0]],
            )

        cores = sorted(_grouped(free, layout.core).values(), key=order)
        return [cpu for cpus in cores for cpu in sorted(cpus, key=self._cpu_order)]

    # --- what all of them need --------------------------------------------------------------------

    def _first(self, lists: Iterable[Sequence[int]]) -> bool:
        """Take all from the first list that is long enough."""
        for cpus in lists:
            if len(cpus) >= self._left:
                self._take(cpus[: self._left])
                return True
        return False

    def _take(self, cpus: Iterable[int]) -> None:
        for cpu in cpus:
            self._taken.append(cpu)
            self._free.discard(cpu)

    def _unblocked(self, *, cores: bool, zones: bool) -> list[int]:
        """The free CPUs that no exclusive neighbours keep the pod from; by core, by zone."""
        layout, exclusive = self._layout, self._wanted.exclusive
        if cores and exclusive is CPUExclusive.PCPU_LEVEL:
            kept = self._held.cores | {layout.core[cpu] for cpu in self._taken}
            return [cpu for cpu in self._free if layout.core[cpu] not in kept]
        if zones and exclusive is CPUExclusive.NUMA_NODE_LEVEL:
            zones_kept = self._held.zones | {layout.zone[cpu] for cpu in self._taken}
            return [cpu for cpu in self._free if layout.zone[cpu] not in zones_kept]
        return list(self._free)

    def _spread(self, cpus: Sequence[int]) -> Sequence[int]:
        """One CPU of each core, then a second one of each, and so on."""
        if len(cpus) <= self._layout.per_core:
            return cpus
        rounds: dict[int, int] = {}
        turns = []
        for cpu in cpus:
            core = self._layout.core[cpu]
            turn = rounds[core] = rounds.get(core, -1) + 1
            turns.append(turn)
        order = sorted(range(len(cpus)), key=turns.__getitem__)
        return [cpus[index] for index in order]

    def _signed(self, free: int) -> int:
        return free if self._least_first else -free

    def _references(self, cpus: Iterable[int]) -> int:
        return sum(self._held.references.get(cpu, 0) for cpu in cpus)

    def _cpu_order(self, cpu: int) -> tuple[int, int]:
        return self._held.references.get(cpu, 0), cpu
