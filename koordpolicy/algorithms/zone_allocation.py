"""What a pod gets of a node: CPUs of its own, shares of zones, or why it gets none.

`allocate` is the one place where that is decided. It is exact for one node; whoever looks at many asks columns first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from koordpolicy.algorithms.cpu_accumulator import (
    NOT_ENOUGH,
    BindPolicy,
    HeldCPUs,
    NotEnoughCPUs,
    WantedCPUs,
    fitting,
    take_by_zone,
    take_required,
)
from koordpolicy.algorithms.cpu_binding import (
    NO_ZONES,
    NodeRules,
    PodNeeds,
    Terms,
    amounts_of,
    conflict,
    terms_of,
)
from koordpolicy.algorithms.fit_score import Strategy
from koordpolicy.algorithms.numa_merge import (
    MOST_ZONES,
    Affinity,
    Hint,
    Hints,
    NUMAPolicy,
    Zones,
    ZoneUse,
    mask_of,
    merge,
    zone_sets,
    zones_of,
)
from koordpolicy.model.cpu_layout import CPULayout
from koordpolicy.model.cpu_topology import Allocation
from koordpolicy.model.protocol import CPU
from koordpolicy.model.reading import Amounts

MILLI: Final = 1000

NOT_AS_MANY: Final = "the CPUs chosen for the pod are not as many as it asks for"
NOT_BESIDE: Final = "node(s) cannot allocate what the pod wants beside CPUs in its NUMA zones"


class NoRoom(Exception):
    """A pod does not fit."""


@dataclass(frozen=True, slots=True)
class ZoneRules:
    """How one way to allocate is scored: by which strategy, with which weights."""

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    weights: Mapping[str, int] = field(default_factory=dict)


class NodeRoom(NamedTuple):
    """What a node has and what of it is free now.

    `free` are CPUs that a pod may get as its own. `offers` and `available` are amounts by zone; CPU is in millicores and amplified.
    """

    layout: CPULayout
    rules: NodeRules
    free: frozenset[int]
    held: HeldCPUs
    offers: Mapping[int, Amounts]
    available: Mapping[int, Amounts]
    uses: Mapping[int, ZoneUse]
    owned: int = 0
    """CPUs that pods have as their own."""
    preferred: frozenset[int] = frozenset()
    """Free ones that are taken before others."""

    @property
    def zones(self) -> list[int]:
        """The zones that have amounts, at most so many as hints are made of."""
        return sorted(self.offers)[:MOST_ZONES]


class HintProvider(Protocol):
    """Someone else who allocates something of a pod's in zones, such as devices."""

    def hints(self) -> Hints:
        """On which zones it could. Raises NoRoom where it can on none."""
        ...

    def fits(self, zones: int | None) -> bool:
        """Whether it can on these (a mask; None: any)."""
        ...


class Placed(NamedTuple):
    """What a pod gets, and the zones (a mask; None: any) in which everybody allocates for it."""

    allocation: Allocation
    zones: int | None


def allocate(
    room: NodeRoom, needs: PodNeeds, scored: ZoneRules, providers: Iterable[HintProvider] = ()
) -> Allocation:
    """What a pod gets on a node. Raises NoRoom with the reason."""
    return place(room, needs, scored, providers).allocation


def place(
    room: NodeRoom, needs: PodNeeds, scored: ZoneRules, providers: Iterable[HintProvider] = ()
) -> Placed:
    """The same, and in which zones. Raises NoRoom with the reason."""
    terms = terms_of(needs, room.rules, room.layout.per_core)
    reason = conflict(needs, room.rules, room.layout.per_core, terms)
    if reason is not None:
        raise NoRoom(reason)
    if terms.numa is NUMAPolicy.NONE:
        return Placed(_given(room, needs, terms, None), None)
    if not room.offers:
        raise NoRoom(NO_ZONES)
    found = affinity(room, needs, terms, scored, others := tuple(providers))
    if not found.admitted:
        raise NoRoom("; ".join(found.unsatisfied) or found.reason)
    if not all(one.fits(found.zones) for one in others):
        raise NoRoom(NOT_BESIDE)
    return Placed(_given(room, needs, terms, found.zones), found.zones)


def check(room: NodeRoom, needs: PodNeeds, terms: Terms, chosen: Allocation) -> None:
    """Whether a node has exactly that to give: CPUs and amounts of zones that somebody else has chosen. Raises NoRoom."""
    if len(chosen.cpus) != (needs.cpus if terms.bound else 0):
        raise NoRoom(NOT_AS_MANY)
    if not chosen.cpus <= room.free:
        raise NoRoom(NOT_ENOUGH)
    for zone, amounts in chosen.zones.items():
        available = room.available.get(zone, {})
        for name, amount in amounts.items():
            if available.get(name, 0) < amount:
                raise NoRoom(f"Insufficient NUMA {name}")


def affinity(
    room: NodeRoom, needs: PodNeeds, terms: Terms, scored: ZoneRules, providers: Iterable[HintProvider] = ()
) -> Affinity:
    """The zones that a pod is to be in."""
    zones = Zones(mask_of(room.zones), room.uses, needs.apart)
    own = hints_of(room, needs, terms, scored)
    return merge(terms.numa, zones, [own, *(one.hints() for one in providers)])


def hints_of(room: NodeRoom, needs: PodNeeds, terms: Terms, scored: ZoneRules) -> Hints:
    """On which zones a node could give a pod what it asks for of CPUs, memory and whatever else zones have."""
    reported = {name for amounts in room.offers.values() for name in amounts}
    asked = [name for name, _ in needs.request if name in reported]
    hints: dict[str, list[Hint]] = {name: [] for name in asked}
    smallest: dict[str, int] = {}
    single = terms.numa is NUMAPolicy.SINGLE_NUMA_NODE
    sets = [1 << zone for zone in room.zones] if single else zone_sets(room.zones)
    for mask in sets:
        members = zones_of(mask)
        try:
            _given(room, needs, terms, mask)
        except NoRoom:
            continue
        score = _score(room, needs, members, scored)
        for name in asked:
            if all(room.offers[zone].get(name, 0) > 0 for zone in members):
                least = smallest.setdefault(name, len(members))
                preferred = terms.numa is NUMAPolicy.RESTRICTED or len(members) == least
                hints[name].append(Hint(mask, preferred, score))
    return hints


def split(room: NodeRoom, needs: PodNeeds, terms: Terms, zones: Iterable[int]) -> dict[int, dict[str, int]]:
    """What each of some zones gives of what a pod requests; raises NoRoom where they do not have it.

    Those with the least come first, so that what they lack falls to those with more.
    """
    chosen = list(zones)
    reported = {name for amounts in room.offers.values() for name in amounts}
    found: dict[int, dict[str, int]] = {zone: {} for zone in chosen}
    for name, asked in amounts_of(needs).items():
        if name not in reported:
            continue
        whole = name == CPU and terms.bound
        step = _step(room, terms) if whole else 1
        there = {zone: _available(room, terms, zone, name) for zone in chosen}
        order = sorted(chosen, key=lambda zone: (there[zone], zone))
        if not room.rules.evenly:
            order.reverse()
        left = asked
        for place, zone in enumerate(order):
            share = left if not room.rules.evenly else left // step // (len(order) - place) * step
            given = min(there[zone], share)
            if given > 0:
                found[zone][name] = given
                left -= given
        if left > 0:
            raise NoRoom(f"Insufficient NUMA {name}")
    return {zone: amounts for zone, amounts in found.items() if amounts}


def _step(room: NodeRoom, terms: Terms) -> int:
    """In what pieces CPU is split: whole CPUs, or whole cores."""
    whole = terms.required and terms.bind is BindPolicy.FULL_PCPUS
    return MILLI * max(room.layout.per_core if whole else 1, 1)


def _available(room: NodeRoom, terms: Terms, zone: int, name: str) -> int:
    available = room.available.get(zone, {}).get(name, 0)
    if name != CPU or not terms.bound:
        return available
    usable = fitting(room.layout, room.free, terms.bind) if terms.required else room.free
    most = MILLI * len(usable & room.layout.zones.get(zone, frozenset()))
    step = _step(room, terms)
    return min(available, most) // step * step


def _given(room: NodeRoom, needs: PodNeeds, terms: Terms, mask: int | None) -> Allocation:
    """What a pod gets on some zones (None: not told apart). Raises NoRoom."""
    zones = {} if mask is None else split(room, needs, terms, zones_of(mask))
    if not terms.bound:
        return Allocation(zones=zones)
    by_zone = None
    if zones and any(CPU in amounts for amounts in zones.values()):
        by_zone = {zone: amounts.get(CPU, 0) // MILLI for zone, amounts in zones.items()}
    wanted = WantedCPUs(needs.cpus, terms.bind, needs.exclusive, room.rules.strategy)
    take = take_required if terms.required else take_by_zone
    try:
        cpus = take(room.layout, room.free, room.preferred, wanted, room.held, by_zone)
    except NotEnoughCPUs as problem:
        raise NoRoom(str(problem)) from problem
    return Allocation(cpus, zones)


def _score(room: NodeRoom, needs: PodNeeds, members: list[int], scored: ZoneRules) -> int:
    asked, total, weight = amounts_of(needs), 0, 0
    for name, times in scored.weights.items():
        offered = sum(room.offers[zone].get(name, 0) for zone in members)
        if offered <= 0:
            continue
        free = sum(room.available[zone].get(name, 0) for zone in members)
        requested = offered - free + asked.get(name, 0)
        if scored.strategy is Strategy.MOST_ALLOCATED:
            total += min(requested, offered) * 100 // offered * times
        elif requested <= offered:
            total += (offered - requested) * 100 // offered * times
        weight += times
    return total // weight if weight else 0
