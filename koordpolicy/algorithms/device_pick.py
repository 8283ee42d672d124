"""Which devices of a node a pod gets: the first that are free enough, the smallest scope that has enough of them, or a
partition of cards that are linked with each other.

Devices are told apart by their minor. What comes first is a key, the least of which is best.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Final

from koordpolicy.algorithms.device_need import DeviceNeed
from koordpolicy.model.reading import NOTHING, Amounts

INSUFFICIENT: Final = "Insufficient GPU Devices"
SCOPED: Final = "Insufficient Topology Scoped GPU Devices"
NO_TREE: Final = "node(s) missing GPU Device Topology Tree"
SEVERAL_SHARED: Final = "node(s) Unsupported Multi-Shared GPU"

NO_NUMA: Final = -1


@dataclass(slots=True)
class Card:
    """A device as it is now: what it has (nothing: it is not healthy), what of that is free, and where it is plugged in. Not to be
    written: each pod makes one, and one that is frozen takes three times as long.
    """

    minor: int
    total: Amounts = field(default_factory=lambda: NOTHING)
    free: Amounts = field(default_factory=lambda: NOTHING)
    numa: int = NO_NUMA
    pcie: str = ""
    used: bool = field(init=False, compare=False)
    """Whether anybody has something of it."""

    def __post_init__(self) -> None:
        free = self.free
        self.used = bool([1 for name, number in self.total.items() if free.get(name, 0) < number])

    def percent(self, resource: str) -> int:
        """How much of a resource is free, in percent of what there is."""
        total = self.total.get(resource, 0)
        return 100 * self.free.get(resource, 0) // total if total else 0

    def fits(self, each: Amounts) -> bool:
        """Whether it has so much free. What it does not have at all is not compared."""
        total, free = self.total, self.free
        if not total:
            return False
        # Asked of every device of a node: a generator takes twice as long.
        return not [1 for name, number in each.items() if name in total and free.get(name, 0) < number]


Key = Callable[[Card], Any]
"""What devices are compared by; the least comes first."""


class Unpicked(Exception):
    """No devices of a node will do. `resolvable` says whether fewer pods there might help."""

    def __init__(self, reason: str, *, resolvable: bool = True) -> None:
        super().__init__(reason)
        self.resolvable = resolvable


def pick(
    cards: Sequence[Card],
    need: DeviceNeed,
    key: Key | None = None,
    preferred: Collection[int] = (),
    pcies: Collection[str] = (),
    most: int | None = None,
) -> tuple[int, ...]:
    """The first devices that are free enough, up to `most` (None: as many as are needed).

    By the key, then by minor; `preferred` ones first; where there are none, those at these PCIe switches, taken from one after
    the other. Fewer than are needed is nothing at all.
    """
    ordered = sorted(cards, key=lambda card: (key(card) if key else 0, card.minor))
    if preferred:
        ordered.sort(key=lambda card: card.minor not in preferred)
    elif pcies:
        ordered = _in_turn(ordered, pcies)
    fitting = [card.minor for card in ordered if card.fits(need.each)]
    return tuple(fitting[: need.count if most is None else most]) if len(fitting) >= need.count else ()


def _in_turn(cards: Sequence[Card], pcies: Collection[str]) -> list[Card]:
    """The best device of each switch, then the second best of each; others after them."""
    by_switch: dict[str, list[Card]] = {}
    for card in cards:
        if card.pcie in pcies:
            by_switch.setdefault(card.pcie, []).append(card)
    place = {card.minor: at for at, card in enumerate(cards)}
    found: list[Card] = []
    for turn in zip_longest(*by_switch.values()):
        found += sorted((card for card in turn if card is not None), key=lambda card: place[card.minor])
    return found + [card for card in cards if card.pcie not in pcies]


# --- by topology ----------------------------------------------------------------------------------


class Scope(IntEnum):
    """How near devices are to each other; the tree of a node ends with its PCIe switches."""

    ANY = 0
    NODE = 1
    NUMA = 2
    PCIE = 3
    DEVICE = 4


SCOPES: Final[Mapping[str, Scope]] = {
    "": Scope.ANY, "Node": Scope.NODE, "NUMANode": Scope.NUMA, "PCIe": Scope.PCIE, "Device": Scope.DEVICE,
}  # fmt: skip
"""Scopes as pods name them."""


def pick_by_topology(
    cards: Sequence[Card], need: DeviceNeed, key: Key, required: Scope = Scope.ANY
) -> tuple[int, ...]:
    """The devices of the smallest scope that has enough, one that is in use before one that is not. Raises Unpicked.

    The key decides between scopes, and between devices, where a device is shared; whole ones are taken by minor.
    """
    if need.shared and need.count > 1:
        _in_a_tree(cards)
        raise Unpicked(SEVERAL_SHARED, resolvable=False)
    count = need.count
    switches, in_use = _by_switch(cards, need.each)
    zones_in_use = {numa for numa, _ in in_use}
    # The smallest scopes that have enough, with how many parts on the way to each are in use.
    scopes: list[tuple[int, list[Card]]] = []
    if required <= Scope.PCIE:
        scopes = [
            ((place[0] in zones_in_use) + (place in in_use), fitting)
            for place, fitting in sorted(switches.items())
            if len(fitting) >= count
        ]
    if not scopes and required <= Scope.NUMA:
        scopes = [
            (int(numa in zones_in_use), fitting)
            for numa in sorted({numa for numa, _ in switches})
            if len(fitting := _together(switches, numa)) >= count
        ]
    if not scopes and required <= Scope.NODE and len(every := _together(switches)) >= count:
        scopes = [(0, every)]
    if not scopes:
        raise Unpicked(SCOPED if required else INSUFFICIENT)
    most = max([used for used, _ in scopes])
    best = [fitting for used, fitting in scopes if used == most]
    if not need.shared:
        return tuple([card.minor for card in best[0][:count]])
    candidates = [card for fitting in best for card in fitting]
    return ((candidates[0] if len(candidates) == 1 else min(candidates, key=key)).minor,)


def _in_a_tree(cards: Sequence[Card]) -> None:
    """Raise Unpicked unless it is said of all devices where they are plugged in."""
    for card in cards:  # asked for each pod: a generator takes twice as long
        if not card.pcie or card.numa == NO_NUMA:
            raise Unpicked(NO_TREE, resolvable=False)


_Place = tuple[int, str]
"""A NUMA zone and a switch."""


def _by_switch(cards: Sequence[Card], asked: Amounts) -> tuple[dict[_Place, list[Card]], set[_Place]]:
    """The devices that would do by NUMA zone and switch, by minor, and where any is in use. Raises Unpicked."""
    _in_a_tree(cards)
    each = [*asked.items()]
    switches: dict[_Place, list[Card]] = {}
    in_use: set[_Place] = set()
    for card in sorted(cards, key=_minor):
        place = card.numa, card.pcie
        if card.used:
            in_use.add(place)
        total, free = card.total, card.free
        for name, number in each:  # as `fits` says, without the calls
            if free.get(name, 0) < number and name in total:
                break
        else:
            if not total:
                continue
            if place in switches:
                switches[place].append(card)
            else:
                switches[place] = [card]
    return switches, in_use


def _together(switches: Mapping[_Place, Sequence[Card]], numa: int | None = None) -> list[Card]:
    """The devices of a zone, or of all, by minor."""
    found = [card for place, cards in switches.items() if numa in (None, place[0]) for card in cards]
    return sorted(found, key=_minor)


_minor: Final = attrgetter("minor")
