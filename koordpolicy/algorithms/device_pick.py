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


@dataclass(frozen=True, slots=True)
class Card:
    """A device as it is now: what it has (nothing: it is not healthy), what of that is free, and where it is plugged in."""

    minor: int
    total: Amounts = field(default_factory=lambda: NOTHING)
    free: Amounts = field(default_factory=lambda: NOTHING)
    numa: int = NO_NUMA
    pcie: str = ""
    used: bool = field(init=False, compare=False)
    """Whether anybody has something of it."""

    def __post_init__(self) -> None:
        free = self.free
        used = bool([1 for name, number in self.total.items() if free.get(name, 0) < number])
        object.__setattr__(self, "used", used)

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
    if any(not card.pcie or card.numa == NO_NUMA for card in cards):
        raise Unpicked(NO_TREE, resolvable=False)
    if need.shared and need.count > 1:
        raise Unpicked(SEVERAL_SHARED, resolvable=False)
    count = need.count
    # By NUMA zone and switch: those that would do, and whether any is in use.
    switches: dict[tuple[int, str], list[Card]] = {}
    zones: dict[int, list[Card]] = {}
    every: list[Card] = []
    in_use: set[tuple[int, str]] = set()
    for card in sorted(cards, key=attrgetter("minor")):
        place = card.numa, card.pcie
        if card.used:
            in_use.add(place)
        if card.fits(need.each):
            every.append(card)
            zones.setdefault(card.numa, []).append(card)
            switches.setdefault(place, []).append(card)
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
            for numa, fitting in sorted(zones.items())
            if len(fitting) >= count
        ]
    if not scopes and required <= Scope.NODE and len(every) >= count:
        scopes = [(0, every)]
    if not scopes:
        raise Unpicked(SCOPED if required else INSUFFICIENT)
    most = max([used for used, _ in scopes])
    best = [fitting for used, fitting in scopes if used == most]
    if not need.shared:
        return tuple([card.minor for card in best[0][:count]])
    candidates = [card for fitting in best for card in fitting]
    return ((candidates[0] if len(candidates) == 1 else min(candidates, key=key)).minor,)
