"""Which CPUs of a machine share a core, a NUMA zone, a socket: computed once, asked often."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Self

from koordpolicy.model.topology import Processor


@dataclass(frozen=True, slots=True)
class CPULayout:
    """The CPUs of a machine by place. `cpus` ascend; so do those of each core.

    `per_core`, `per_zone` and `per_socket` are how many CPUs there are on average, rounded down: 0 without any.
    """

    cpus: tuple[int, ...]
    core: Mapping[int, int]
    zone: Mapping[int, int]
    socket: Mapping[int, int]
    siblings: Mapping[int, tuple[int, ...]]
    """The CPUs of each core."""
    socket_of_zone: Mapping[int, int]
    zones: Mapping[int, frozenset[int]]
    """The CPUs of each zone."""
    sockets: Mapping[int, frozenset[int]]
    """The CPUs of each socket."""
    zone_cores: Mapping[int, tuple[tuple[int, ...], ...]]
    """The CPUs of each core of a zone, in the order of cores; those of cores that have as many as `per_core` alone."""
    socket_cores: Mapping[int, tuple[tuple[int, ...], ...]]
    """The same of each socket."""
    per_core: int
    per_zone: int
    per_socket: int
    even: bool
    """Whether all cores have as many CPUs, each within one zone."""

    @classmethod
    def of(cls, processors: Iterable[Processor]) -> Self:
        """The layout of these CPUs. Numbers of cores are to be unique in the machine."""
        ordered = sorted(processors)
        siblings: dict[int, list[int]] = {}
        zones: dict[int, set[int]] = {}
        by_socket: dict[int, set[int]] = {}
        for one in ordered:
            by_socket.setdefault(one.socket, set()).add(one.cpu)
            siblings.setdefault(one.core, []).append(one.cpu)
            zones.setdefault(one.node, set()).add(one.cpu)
        count, sockets = len(ordered), len(by_socket)
        per_core = count // len(siblings) if siblings else 0
        zone = {one.cpu: one.node for one in ordered}
        socket = {one.cpu: one.socket for one in ordered}
        cores = [tuple(cpus) for _, cpus in sorted(siblings.items()) if len(cpus) == per_core]
        return cls(
            tuple(one.cpu for one in ordered),
            {one.cpu: one.core for one in ordered},
            zone,
            socket,
            {core: tuple(cpus) for core, cpus in siblings.items()},
            {one.node: one.socket for one in ordered},
            {number: frozenset(cpus) for number, cpus in zones.items()},
            {number: frozenset(cpus) for number, cpus in by_socket.items()},
            _by_place(cores, zone),
            _by_place(cores, socket),
            per_core,
            count // len(zones) if zones else 0,
            count // sockets if sockets else 0,
            len(cores) == len(siblings) and all(zone[cpu] == zone[cpus[0]] for cpus in cores for cpu in cpus),
        )

    def __bool__(self) -> bool:
        return bool(self.cpus)

    def cores(self, cpus: Iterable[int]) -> int:
        """On how many cores some CPUs lie."""
        return len({self.core[cpu] for cpu in cpus})

    def of_whole_cores(self, cpus: frozenset[int]) -> frozenset[int]:
        """Those of some CPUs whose cores are among them as a whole."""
        whole = filter(frozenset(cpus).issuperset, self.siblings.values())
        return frozenset(chain.from_iterable(whole))

    def usable(self, free: frozenset[int]) -> dict[int, tuple[int, int, int]]:
        """By zone, how many of some CPUs there are: all, those of whole cores, one of each core."""
        if not self.even:
            whole, first = self.of_whole_cores(free), self.one_of_each_core(free)
            return {
                zone: (len(free & cpus), len(whole & cpus), len(first & cpus))
                for zone, cpus in self.zones.items()
            }
        size, full, bare = self.per_core, free.issuperset, free.isdisjoint
        return {
            zone: (
                len(free & self.zones[zone]),
                size * sum(map(full, cores)),
                len(cores) - sum(map(bare, cores)),
            )
            for zone, cores in self.zone_cores.items()
        }

    def one_of_each_core(self, cpus: Iterable[int]) -> frozenset[int]:
        """The first of some CPUs on each core."""
        among, found = frozenset(cpus), []
        for siblings in self.siblings.values():
            for cpu in siblings:
                if cpu in among:
                    found.append(cpu)
                    break
        return frozenset(found)


def _by_place(
    cores: Iterable[tuple[int, ...]], place: Mapping[int, int]
) -> dict[int, tuple[tuple[int, ...], ...]]:
    """The cores of each zone, or socket."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for cpus in cores:
        found.setdefault(place[cpus[0]], []).append(cpus)
    return {number: tuple(listed) for number, listed in found.items()}
