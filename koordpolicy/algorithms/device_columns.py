"""The devices of one type on all nodes, row by row and device by device, for what is asked of all of them at once.

Shapes: N nodes, W devices at most on one. What is added up over the devices of a node is kept added up: of one decision to the
next, one row differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask, Numbers
from koordpolicy.algorithms.device_pick import NO_NUMA, Card
from koordpolicy.algorithms.device_score import BEST, FillStrategy
from koordpolicy.model.reading import Amounts

Whole = NDArray[np.int64]

Counted = NDArray[np.int64] | NDArray[np.int16]
"""Amounts of devices, in as few bytes as they need."""

_SHORT: Final = np.iinfo(np.int16).max
"""Less than that of a resource is kept in two bytes: percents take a quarter of the time of bytes of memory."""

_LONG: Final = np.iinfo(np.int64).max

_BYTES: Final = np.iinfo(np.int8).max
"""Devices of a node that a byte can count."""

EVERY: Final = slice(None)
"""All rows."""

NO_DEVICE: Final = -1
"""What is free of a device that is not there, or not healthy: less than anybody asks for."""

_EXACT: Final = 1 << 44
"""Wholes of which doubles tell one part more from one less, at least where they are counted in hundreds."""


@dataclass(slots=True)
class DeviceColumns:
    """What is free, and what there is, of each resource (N, W), and in all on a node (N). `models` by the label of Device objects (N).

    `watched` are the rows that were written since each of those who keep something by rows looked at them.
    """

    there: Mask
    zones: NDArray[np.int16]
    """The NUMA zone of each device, -1 where that is not said."""
    free: dict[str, Counted]
    total: dict[str, Counted]
    ranked: dict[str, Counted]
    """What is free on each node's devices from the most to the least, -1 of none (N, W), resource by resource."""
    ordered: Mask
    """Whether one order of a node's devices ranks all resources: then the last of so many has the least of all of them (N)."""
    free_of_node: dict[str, Numbers]
    total_of_node: dict[str, Numbers]
    models: NDArray[np.object_]
    without: dict[str, int]
    """On how many nodes there is nothing of a resource."""
    largest: dict[str, int]
    """The most that any node has, or has had, of a resource."""
    endless: dict[str, int]
    """What is free of a resource that a device does not have: it is not compared."""
    listed: dict[int, list[tuple[Amounts, int]]] = field(default_factory=dict)
    """What the devices of each row have, and in which zones they are."""
    unordered: int = 0
    """How many nodes are not `ordered`."""
    unasked: dict[tuple[str, FillStrategy], Whole] = field(default_factory=dict)
    """How full nodes are of a resource, or how empty, for a pod that asks for none of it, once somebody has asked."""
    watched: list[set[int]] = field(default_factory=list)

    @staticmethod
    def of(nodes: int, width: int, resources: Mapping[str, int]) -> "DeviceColumns":
        """Columns without any device yet, for resources of which no device has more than is said."""
        # Node after node for each place, not place after place for each node: what is counted over places is then five times as fast.
        shape = nodes, width
        return DeviceColumns(
            np.zeros(shape, np.bool_, order="F"),
            np.full(shape, NO_NUMA, np.int16, order="F"),
            {name: _zeros(shape, most) for name, most in resources.items()},
            {name: _zeros(shape, most) for name, most in resources.items()},
            {name: np.full_like(_zeros(shape, most), NO_DEVICE) for name, most in resources.items()},
            np.ones(nodes, np.bool_),
            {name: _sums(nodes, most * width) for name, most in resources.items()},
            {name: _sums(nodes, most * width) for name, most in resources.items()},
            np.full(nodes, "", np.object_),
            dict.fromkeys(resources, nodes),
            dict.fromkeys(resources, 0),
            {name: _SHORT if most < _SHORT else _LONG for name, most in resources.items()},
        )

    def put(self, row: int, cards: Sequence[Card], model: str) -> bool:
        """Write the devices of one node; whether there is room for them."""
        width = self.there.shape[1]
        if len(cards) > width or row >= len(self.there):
            return False
        none = [0] * (width - len(cards))
        listed = [(card.total, card.numa) for card in cards]
        if listed != self.listed.get(row):  # what nodes have changes less often than what of it is free
            if not all(self._holds(total) for total, _ in listed):
                return False
            self.listed[row] = listed
            self.there[row] = [bool(total) for total, _ in listed] + none
            self.zones[row] = [max(NO_NUMA, min(numa, _SHORT)) for _, numa in listed] + none
            for name, total in self.total.items():
                totals = [one.get(name, 0) for one, _ in listed]
                in_all = sum(totals)
                if in_all >= _EXACT and self.total_of_node[name].dtype.kind == "f":
                    return False
                self.without[name] += (not in_all) - (not self.total_of_node[name][row])
                self.largest[name] = max(self.largest[name], in_all)
                total[row], self.total_of_node[name][row] = totals + none, in_all
        ranking: list[list[int]] = []
        for name, free in self.free.items():
            endless = self.endless[name]
            left = [card.free.get(name, endless) for card in cards]
            free[row] = left + none
            if endless in left:
                ranking.append(
                    [one if card.total else NO_DEVICE for one, card in zip(left, cards, strict=True)]
                )
                left = [
                    0 if one == endless and not card.total.get(name) else one
                    for one, card in zip(left, cards, strict=True)
                ]
            else:
                ranking.append(left)
            self.free_of_node[name][row] = sum(left)
        self._rank(row, ranking, width)
        for (name, strategy), known in self.unasked.items():
            known[row] = _unasked(self.total_of_node[name][row], self.free_of_node[name][row], strategy)
        self.models[row] = model
        for rows in self.watched:
            rows.add(row)
        return True

    def _rank(self, row: int, ranking: Sequence[list[int]], width: int) -> None:
        """Write in which order the devices of a node have most; by resource what each has free."""
        none = [NO_DEVICE] * (width - len(ranking[0])) if ranking else []
        ordered = True
        together = zip(*sorted(zip(*ranking, strict=True), reverse=True), strict=True)
        for name in self.ranked:
            ranked = [*next(together, ())]
            most_first = sorted(ranked, reverse=True)  # which it is already, but for what is not ordered
            ordered = ordered and ranked == most_first
            self.ranked[name][row] = most_first + none
        if ordered != self.ordered[row]:
            self.ordered[row] = ordered
            self.unordered += -1 if ordered else 1

    def _holds(self, total: Amounts) -> bool:
        """Whether a device has nothing but what there are columns for, wide enough."""
        return all(total_of < self.endless.get(name, 0) for name, total_of in total.items())

    def watch(self) -> set[int]:
        """The rows that will be written, to be emptied by who looks at them."""
        self.watched.append(set())
        return self.watched[-1]

    def fitting(self, each: Amounts, rows: Any = EVERY, *, empty: bool = False) -> NDArray[Any]:
        """How many devices of each node have so much free; `empty` means if nobody had anything."""
        return _counted(self._able(each, rows, empty=empty))

    def lacking(self, each: Amounts, count: int, rows: Any = EVERY) -> Mask:
        """The nodes that have fewer than so many devices with so much free, at least one."""
        known = [(name, number) for name, number in each.items() if name in self.ranked]
        if not known or not 0 < count <= self.there.shape[1]:
            few: Mask = self.fitting(each, rows) < count
            return few
        fits: Mask | None = None
        for name, number in known:
            free = self.ranked[name][:, count - 1]
            if rows is not EVERY:
                free = free[rows]
            enough = free == _SHORT if number >= _SHORT and free.dtype == np.int16 else free >= number
            fits = enough if fits is None else fits & enough
        assert fits is not None
        if self.unordered and (unsure := np.flatnonzero(fits & ~self.ordered[rows])).size:
            fits[unsure] = self.fitting(each, unsure if rows is EVERY else rows[unsure]) >= count
        return ~fits

    def fitting_in_zones(self, each: Amounts, numbers: NDArray[np.int16]) -> list[NDArray[Any]]:
        """How many devices of each node have so much free in each of its zones, which have these `numbers` (N, zones).

        Devices of which it is not said where they are belong to every zone.
        """
        able = self._able(each, EVERY)
        anywhere = self.zones == NO_NUMA
        return [
            _counted(able & (anywhere | (self.zones == numbers[:, place, np.newaxis])))
            for place in range(numbers.shape[1])
        ]

    @property
    def zoned(self) -> Mask:
        """The nodes of whose devices it is said in which zone they are, of one at least."""
        found: Mask = (self.there & (self.zones != NO_NUMA)).any(axis=1)
        return found

    def _able(self, each: Amounts, rows: Any, *, empty: bool = False) -> Mask:
        found: Mask = self.there[rows]
        for name, number in each.items():
            free = self.free.get(name)
            if free is None:
                continue
            if empty:
                found = found & ((self.total[name][rows] >= number) | (free[rows] == self.endless[name]))
            elif number >= _SHORT and free.dtype == np.int16:
                found = found & (free[rows] == _SHORT)
            else:
                found = found & (free[rows] >= number)
        return found

    def filled(
        self, each: Amounts, weights: Mapping[str, int], strategy: FillStrategy, rows: Any = EVERY
    ) -> Whole:
        """How good nodes are by how full their devices would be with so much more, 0 to 100 (`device_score`)."""
        score: Whole | int = 0
        sums: Whole | int = 0
        for name, weight in weights.items():
            if name not in self.total:
                continue
            total, free = self.sums(name, rows)
            asked = each.get(name, 0)
            if not asked:
                part = self._of_unasked(name, strategy)[rows]
            elif strategy == FillStrategy.MOST_ALLOCATED:
                part = self._shares(name, np.minimum(total - free + asked, total), total)
            else:
                part = self._shares(name, np.maximum(free - asked, 0), total)
            score = score + (part if weight == 1 else weight * part)
            sums = sums + weight * (total > 0 if self.without[name] else 1)
        if isinstance(score, int):
            return np.zeros(len(self.there[rows]), np.int64)
        return divided(score, sums)

    def _shares(self, name: str, parts: NDArray[Any], total: NDArray[Any]) -> Whole:
        return shares(parts, total, BEST, self.largest[name], some_nothing=self.without[name] > 0)

    def _of_unasked(self, name: str, strategy: FillStrategy) -> Whole:
        found = self.unasked.get((name, strategy))
        if found is None:
            total, free = self.sums(name)
            part = total - free if strategy == FillStrategy.MOST_ALLOCATED else np.maximum(free, 0)
            found = self.unasked[name, strategy] = self._shares(name, part, total)
        return found

    def measured(self, name: str, rows: Any = EVERY) -> Whole:
        """What of a resource is free on each device; nothing of what a device does not have."""
        if name not in self.total:
            return np.zeros(self.there[rows].shape, np.int64)
        return np.where(self.total[name][rows] > 0, self.free[name][rows].astype(np.int64), 0)

    def sums(self, name: str, rows: Any = EVERY) -> tuple[Numbers, Numbers]:
        """How much of a resource the devices of each node have, and how much of that is free."""
        if name not in self.total:
            none: Numbers = np.zeros(len(self.there[rows]), np.int64)
            return none, none
        return self.total_of_node[name][rows], self.free_of_node[name][rows]


def _unasked(total: float, free: float, strategy: FillStrategy) -> int:
    """How full a node is, or how empty, 0 to 100."""
    part = total - free if strategy == FillStrategy.MOST_ALLOCATED else max(free, 0)
    return BEST * int(part) // int(total) if total > 0 else 0


def _counted(devices: Mask) -> NDArray[Any]:
    if devices.shape[1] > _BYTES:
        many: NDArray[np.int64] = devices.sum(axis=1)
        return many
    counted: NDArray[np.int8] = np.add.reduce(devices.view(np.int8), axis=1, dtype=np.int8)
    return counted


def _sums(nodes: int, most: int) -> Numbers:
    """A column of sums, in doubles where these are exact: nothing has to be converted then to be divided."""
    return np.zeros(nodes, np.float64 if most < _EXACT else np.int64)


def _zeros(shape: tuple[int, int], most: int) -> Counted:
    if most < _SHORT:
        return np.zeros(shape, np.int16, order="F")
    return np.zeros(shape, np.int64, order="F")


def shares(
    parts: NDArray[Any],
    wholes: NDArray[Any],
    of: int,
    largest: float | None = None,
    *,
    some_nothing: bool = True,
) -> Whole:
    """How much parts are of wholes, in whole `of`s, rounded down; 0 where the whole is nothing.

    Parts are not negative. Who knows says which whole is the `largest`, and that none is nothing.
    """
    there = np.maximum(wholes, 1) if some_nothing else wholes
    if of <= 100 and (there.max(initial=1) if largest is None else largest) < _EXACT:
        # A tenth of the time of a division of whole numbers.
        quotients = np.multiply(parts, float(of))
        quotients /= there
        found: Whole = quotients.astype(np.int64)
    else:
        found = (parts * of // there).astype(np.int64, copy=False)
    if some_nothing:
        found[wholes <= 0] = 0
    return found


def divided(points: Whole, weights: Whole | int) -> Whole:
    """Points by weights, rounded down; by 1 where nothing weighs. Of numbers as small as scores."""
    if isinstance(weights, int):
        return points if weights <= 1 else (points / weights).astype(np.int64)
    return points // np.maximum(weights, 1)
