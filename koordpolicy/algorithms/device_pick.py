"""Which devices of a node a pod gets: the first that are free enough, the smallest scope that has enough of them, or a
partition of cards that are linked with each other.

Devices are told apart by their minor. What comes first is a key, the least of which is best.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import zip_longest
from operator import attrgetter, itemgetter
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
    asked = _Asked(need, key, required, frozenset([card.minor for card in cards if card.fits(need.each)]))
    found = _in_scope(sorted(cards, key=attrgetter("minor")), asked, Scope.NODE, 0)
    if found is None:
        raise Unpicked(SCOPED if required else INSUFFICIENT)
    return found[1]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of each scope, and the minors of the devices that would do."""

    need: DeviceNeed
    key: Key
    required: Scope
    fitting: frozenset[int]


_Found = tuple[tuple[Any, ...], tuple[int, ...]]
"""How good it is, the least being best, and the devices."""


def _in_scope(cards: Sequence[Card], asked: _Asked, scope: Scope, in_use: int) -> _Found | None:
    need = asked.need
    fitting = [card for card in cards if card.minor in asked.fitting]
    if len(fitting) < need.count:
        return None
    in_use += bool([1 for card in cards if card.used])
    if scope < Scope.PCIE:
        parts: dict[Any, list[Card]] = {}
        for card in cards:
            parts.setdefault(card.numa if scope is Scope.NODE else card.pcie, []).append(card)
        below = [_in_scope(part, asked, _BELOW[scope], in_use) for _, part in sorted(parts.items())]
        there = [one for one in below if one is not None]
        if there:
            return min(there, key=itemgetter(0))
    if asked.required > scope:
        return None
    if not need.shared:
        return (-scope, -in_use), tuple([card.minor for card in fitting[: need.count]])
    best, place = min([(card, asked.key(card)) for card in fitting], key=itemgetter(1))
    return (-scope, -in_use, place), (best.minor,)


_BELOW: Final = {Scope.NODE: Scope.NUMA, Scope.NUMA: Scope.PCIE}
