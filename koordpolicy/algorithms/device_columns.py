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


_SUM: Final = 1 << 56
"""What the devices of a node have in all counts as no more than that, and what is free as no less than its negative, so that a hundred
times as much is within int64: whoever may write a Device object says what is there."""


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
    most: dict[str, Counted]
    """What is free on that of each node's devices that has most of a resource, -1 of none (N), resource by resource."""
    led: Mask
    """Whether one of a node's devices has the most of all resources (N)."""
    free_of_node: dict[str, Numbers]
    total_of_node: dict[str, Numbers]
    models: NDArray[np.object_]
    without: dict[str, int]
    """On how many nodes there is nothing of a resource."""
    largest: dict[str, int]
    """The most that any node has, or has had, of a resource."""
    endless: dict[str, int]
    """What is free of a resource that a device does not have: it is not compared."""
    written: dict[int, tuple[Card, ...]] = field(default_factory=dict)
    """The devices of each row as they stand here: of one pod to the next, few of them change."""
    leaderless: int = 0
    """How many nodes are not `led`."""
    unasked: dict[tuple[str, FillStrategy], Numbers] = field(default_factory=dict)
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
            {
                name: np.full_like(_zeros((nodes, 1), most)[:, 0], NO_DEVICE)
                for name, most in resources.items()
            },
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
        before = self.written.get(row)
        # What nodes have changes less often than what of it is free.
        changed = None if before is None else _changed(cards, before)
        if changed is None and not self._put_what_is_there(row, cards, none):
            return False
        ranking: list[list[int]] = []
        for name, free in self.free.items():
            endless = self.endless[name]
            left = [card.free.get(name, endless) for card in cards]
            if changed is None:
                free[row] = left + none
            for at in changed or ():
                free[row, at] = left[at]
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
            self.free_of_node[name][row] = _bounded(sum(left))
        self._lead(row, ranking)
        self.written[row] = tuple(cards)
        for (name, strategy), known in self.unasked.items():
            known[row] = _unasked(self.total_of_node[name][row], self.free_of_node[name][row], strategy)
        self.models[row] = model
        for rows in self.watched:
            rows.add(row)
        return True

    def _put_what_is_there(self, row: int, cards: Sequence[Card], none: list[int]) -> bool:
        """Write what devices have and where they are; whether there is room for it."""
        if not all(self._holds(card.total) for card in cards):
            return False
        self.there[row] = [bool(card.total) for card in cards] + none
        self.zones[row] = [max(NO_NUMA, min(card.numa, _SHORT)) for card in cards] + none
        for name, total in self.total.items():
            totals = [card.total.get(name, 0) for card in cards]
            in_all = _bounded(sum(totals))
            if in_all >= _EXACT and self.total_of_node[name].dtype.kind == "f":
                return False
            self.without[name] += (not in_all) - (not self.total_of_node[name][row])
            self.largest[name] = max(self.largest[name], in_all)
            total[row], self.total_of_node[name][row] = totals + none, in_all
        return True

    def _lead(self, row: int, amounts: Sequence[list[int]]) -> None:
        """Write what the devices of a node have at most; by resource what each has free."""
        if not amounts or not amounts[0]:
            for most in self.most.values():
                most[row] = NO_DEVICE
            return
        first, led = max(zip(*amounts, strict=True)), True
        for most, listed, leads in zip(self.most.values(), amounts, first, strict=True):
            best = max(listed)
            led = led and best == leads
            most[row] = best
        if led != self.led[row]:
            self.led[row] = led
            self.leaderless += -1 if led else 1

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
        known = [(name, number) for name, number in each.items() if name in self.most]
        if not known or count != 1:
            few: Mask = self.fitting(each, rows) < count
            return few
        # The one that has most decides, which is found without looking at all of them.
        lacks: Mask | None = None
        for name, number in known:
            free = self.most[name][rows]
            less = free != _SHORT if number >= _SHORT and free.dtype == np.int16 else free < number
            lacks = less if lacks is None else np.logical_or(lacks, less, out=lacks)
        assert lacks is not None
        if self.leaderless and len(known) > 1:
            unsure = np.flatnonzero(~lacks & ~self.led[rows])
            if unsure.size:
                lacks[unsure] = self.fitting(each, unsure if rows is EVERY else rows[unsure]) < 1
        return lacks

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
                able = (self.total[name][rows] >= number) | (free[rows] == self.endless[name])
            elif number >= _SHORT and free.dtype == np.int16:
                able = free[rows] == _SHORT
            else:
                able = free[rows] >= number
            found = np.logical_and(able, found, out=able)
        return found

    def filled(
        self, each: Amounts, weights: Mapping[str, int], strategy: FillStrategy, rows: Any = EVERY
    ) -> Numbers:
        """How good nodes are by how full their devices would be with so much more, 0 to 100 (`device_score`)."""
        score: Numbers | None = None
        sums: Numbers | int = 0
        for name, weight in weights.items():
            if name not in self.total:
                continue
            asked = each.get(name, 0)
            if asked:
                part = self._filled_by(name, asked, strategy, rows)
            else:
                part = self._of_unasked(name, strategy)[rows]
            if weight != 1:
                part = part * weight
            if score is None:
                score = part if asked or weight != 1 else part.copy()
            elif score.dtype == part.dtype:
                score += part
            else:
                score = score + part
            sums = sums + weight * (self.total_of_node[name][rows] > 0 if self.without[name] else 1)
        if score is None:
            return np.zeros(len(self.there[rows]), np.int64)
        return divided(score, sums)

    def _filled_by(self, name: str, asked: int, strategy: FillStrategy, rows: Any) -> Numbers:
        """How full nodes are of a resource, or how empty, with so much more; in an array of its own."""
        total, free = self.sums(name, rows)
        asked = min(asked, _SUM)
        if strategy == FillStrategy.MOST_ALLOCATED:
            part = total - free
            part += asked
            np.minimum(part, total, out=part)
        else:
            part = free - asked
            np.maximum(part, 0, out=part)
        return self._shares(name, part, total)

    def _shares(self, name: str, parts: Numbers, total: Numbers) -> Numbers:
        return shares(parts, total, BEST, self.largest[name], some_nothing=self.without[name] > 0)

    def _of_unasked(self, name: str, strategy: FillStrategy) -> Numbers:
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


def _bounded(amount: int) -> int:
    return max(min(amount, _SUM), -_SUM)


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
    parts: Numbers,
    wholes: Numbers,
    of: int,
    largest: float | None = None,
    *,
    some_nothing: bool = True,
) -> Numbers:
    """How much parts are of wholes, in whole `of`s, rounded down; 0 where the whole is nothing. Of doubles they are doubles, and take
    the place of the parts.

    Parts are not negative. Who knows says which whole is the `largest`, and that none is nothing.
    """
    there = np.maximum(wholes, 1) if some_nothing else wholes
    if of <= 100 and (there.max(initial=1) if largest is None else largest) < _EXACT:
        # A tenth of the time of a division of whole numbers.
        found = parts if parts.dtype.kind == "f" else parts.astype(np.float64)
        found *= of
        found /= there
        np.floor(found, out=found)
    else:
        found = (parts * of // there).astype(np.int64, copy=False)
    if some_nothing:
        found[wholes <= 0] = 0
    return found


def divided(points: Numbers, weights: Numbers | int) -> Numbers:
    """Points by weights, rounded down; by 1 where nothing weighs. Of numbers as small as scores; doubles take the place of the points."""
    if isinstance(weights, int) and weights <= 1:
        return points
    divisor = weights if isinstance(weights, int) else np.maximum(weights, 1)
    if points.dtype.kind != "f":
        found: Numbers = points // divisor
        return found
    points /= divisor
    np.floor(points, out=points)
    return points


def _changed(cards: Sequence[Card], before: Sequence[Card]) -> list[int] | None:
    """The places of the devices that are others now; None where what they have, or where they are, has changed as well."""
    if len(cards) != len(before):
        return None
    found = []
    for at, card in enumerate(cards):
        was = before[at]
        if card is not was:
            if card.total != was.total or card.numa != was.numa:
                return None
            found.append(at)
    return found
