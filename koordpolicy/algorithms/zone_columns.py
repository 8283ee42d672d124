"""Rooms of many nodes as columns: for most nodes at once whether a pod would get its CPUs and zones there.

`RoomColumns.look` says of each node that it takes a pod, that it does not, or that `zone_allocation.allocate` has to be asked: where
a pod has to be split over zones, or cores are not alike. What it says is what `allocate` would.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.amplified import amplified_cpu
from koordpolicy.algorithms.columns import Column, Mask
from koordpolicy.algorithms.cpu_accumulator import NOT_ENOUGH, BindPolicy
from koordpolicy.algorithms.cpu_binding import (
    BIND_DIFFERS,
    NO_TOPOLOGY,
    NO_ZONES,
    NOT_MULTIPLE,
    NOT_WHOLE,
    POLICY_DIFFERS,
    NodeRules,
    PodNeeds,
)
from koordpolicy.algorithms.fit_score import Strategy
from koordpolicy.algorithms.numa_merge import MOST_ZONES, Exclusive, NUMAPolicy, ZoneUse
from koordpolicy.algorithms.zone_allocation import MILLI, NodeRoom, ZoneRules
from koordpolicy.model.cpu_layout import CPULayout
from koordpolicy.model.protocol import CPU
from koordpolicy.model.reading import Amounts

NO_ZONE_FITS: Final = "node(s) without a NUMA zone that has room for the pod"
TOO_LITTLE: Final = "node(s) whose NUMA zones have too little together"

REASONS: Final = (
    POLICY_DIFFERS, NOT_WHOLE, NO_TOPOLOGY, BIND_DIFFERS, NOT_MULTIPLE, NO_ZONES, NOT_ENOUGH, NO_ZONE_FITS, TOO_LITTLE,
)  # fmt: skip

_NOT_WHOLE, _NO_TOPOLOGY = REASONS.index(NOT_WHOLE), REASONS.index(NO_TOPOLOGY)
_NOT_MULTIPLE, _NOT_ENOUGH = REASONS.index(NOT_MULTIPLE), REASONS.index(NOT_ENOUGH)

_LASTING: Final = 6
"""So many of the reasons hold whoever leaves the node."""

_BINDS: Final = (BindPolicy.NONE, BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS)
_POLICIES: Final = tuple(NUMAPolicy)
NO_ZONE: Final = -2
"""The number of a zone that is not there."""
_MOST_NUMBER: Final = np.iinfo(np.int16).max
_SINGLE, _FULL = _POLICIES.index(NUMAPolicy.SINGLE_NUMA_NODE), _BINDS.index(BindPolicy.FULL_PCPUS)

_NO_CPUS: Final[tuple[tuple[int, ...], ...]] = ((), (), ())

_Zones = NDArray[np.int64]
"""A number for each node and zone."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known of each node: row i of `refused` marks those refused for `REASONS[i]`, each for one reason at most.

    `unresolvable` would be refused whoever left; of the `undecided` nothing is known. `none` says that all nodes take the pod;
    the arrays are others' as well then.
    """

    refused: Mask
    unresolvable: Mask
    undecided: Mask
    none: bool = False


@lru_cache(maxsize=4)
def _all_take_it(rows: int) -> Looked:
    nowhere = np.zeros((len(REASONS), rows), np.bool_)
    nowhere.flags.writeable = False
    return Looked(nowhere, nowhere[0], nowhere[0], none=True)


@dataclass(frozen=True, slots=True)
class Beside:
    """Where others can allocate what a pod wants beside CPUs: in which zones by themselves (rows, zones in the order of
    `RoomColumns.numbers`), on nodes that are `told`; of those that are `unsure` nothing is known.
    """

    zones: Mask
    told: Mask
    unsure: Mask


class RoomColumns:
    """The rooms of nodes by row. A row that was never put has neither CPUs nor zones."""

    def __init__(self, rows: int = 0) -> None:
        self._rows = rows
        self.used = rows
        """Rows beyond mean nothing, and have no CPUs."""
        self._most = 1
        # By usable CPUs of each binding: all that are free, those of whole cores, one of each core.
        self._usable = np.zeros((3, rows), np.int64)
        self._in_zone = np.zeros((3, rows, MOST_ZONES), np.int64)
        self._per_core = np.zeros(rows, np.int64)
        self._alike = np.ones(rows, np.bool_)
        self._bind = np.zeros(rows, np.int64)
        self._numa = np.zeros(rows, np.int64)
        self._zones = np.zeros((rows, MOST_ZONES), np.bool_)
        self.numbers = np.full((rows, MOST_ZONES), NO_ZONE, np.int16)
        """The numbers of each node's zones, in order."""
        self._shared = np.zeros((rows, MOST_ZONES), np.bool_)
        self.sold = np.zeros(rows)
        """What the CPUs that pods own are sold for, in millicores."""
        self.ratios = np.ones(rows)
        """How many times over CPU is sold."""
        self._forced = self._aligned = self._odd = self._amplified = 0
        """How many nodes bind all pods, admit affinities only, have cores that are not alike, sell CPU more than once."""
        self._untold = rows
        """How many rows have no CPUs."""
        self._known: dict[int, tuple[CPULayout, NodeRules, Mapping[int, Amounts]]] = {}
        self._available: dict[str, _Zones] = {}
        self._offers: dict[str, _Zones] = {}
        self._reported: dict[str, Mask] = {}

    def __len__(self) -> int:
        return self._rows

    def put(self, row: int, room: NodeRoom) -> None:
        """A node has this room now. `row` is below the number of rows."""
        layout, free = room.layout, room.free
        # What a node has changes less often than what of it is free.
        known = self._known.get(row)
        if known is None or known[0] is not layout or known[1] != room.rules or known[2] != room.offers:
            self._known[row] = layout, room.rules, room.offers
            self._put_what_is_there(row, room)
        # Number by number: these are few, and a list costs as much as twenty.
        by_zone, in_zone, uses = layout.usable(free), self._in_zone, room.uses
        for binding, usable in enumerate(zip(*by_zone.values(), strict=True) if by_zone else _NO_CPUS):
            self._usable[binding, row] = sum(usable)
        for place, zone in enumerate(room.zones):
            in_zone[0, row, place], in_zone[1, row, place], in_zone[2, row, place] = by_zone.get(
                zone, (0, 0, 0)
            )
            self._shared[row, place] = uses.get(zone) is ZoneUse.SHARED
            amounts = room.available[zone]
            for name, available in self._available.items():
                if self._reported[name][row]:
                    available[row, place] = amounts.get(name, 0)
        self.sold[row] = amplified_cpu(MILLI * room.owned, room.rules.ratio)

    def _put_what_is_there(self, row: int, room: NodeRoom) -> None:
        """What a node has and what holds there; nothing of it is free yet."""
        layout, numbers = room.layout, room.zones
        self._most = max(self._most, len(numbers))
        self._in_zone[:, row] = 0
        self._zones[row] = self._shared[row] = False
        self.numbers[row] = NO_ZONE
        for place, zone in enumerate(numbers):
            self._zones[row, place] = True
            self.numbers[row, place] = min(zone, _MOST_NUMBER)
        ratio = max(room.rules.ratio, 1.0)
        self._amplified += (ratio > 1) - bool(self.ratios[row] > 1)
        self.ratios[row] = ratio
        self._untold += bool(self._per_core[row]) - (layout.per_core > 0)
        self._per_core[row] = layout.per_core
        alike = all(len(cpus) == layout.per_core for cpus in layout.siblings.values())
        self._odd += bool(self._alike[row]) - alike
        self._alike[row] = alike
        bind, numa = _BINDS.index(room.rules.bind), _POLICIES.index(room.rules.numa)
        self._forced += (bind > 0) - bool(self._bind[row])
        self._aligned += (numa > 0) - bool(self._numa[row])
        self._bind[row], self._numa[row] = bind, numa
        for reported in self._reported.values():
            reported[row] = False
        for name in {name for amounts in room.offers.values() for name in amounts}:
            if name not in self._reported:
                self._available[name] = np.zeros((self._rows, MOST_ZONES), np.int64)
                self._offers[name] = np.zeros((self._rows, MOST_ZONES), np.int64)
                self._reported[name] = np.zeros(self._rows, np.bool_)
            available, offers = self._available[name], self._offers[name]
            self._reported[name][row] = True
            available[row] = offers[row] = 0
            offers[row, : len(numbers)] = [room.offers[zone].get(name, 0) for zone in numbers]

    @property
    def any_rules(self) -> bool:
        """Whether any node binds pods that do not ask for it, or admits affinities only."""
        return self._forced > 0 or self._aligned > 0

    @property
    def any_aligned(self) -> bool:
        """Whether any node admits affinities only."""
        return self._aligned > 0

    @property
    def amplified(self) -> bool:
        """Whether any node sells its CPU more than once."""
        return self._amplified > 0

    @property
    def most_zones(self) -> int:
        """So many zones no node exceeds."""
        return self._most

    def look(self, needs: PodNeeds, beside: Beside | None = None) -> Looked:
        """What is known of a pod on each node, which wants something `beside` perhaps."""
        if not (needs.numa or self._forced or self._aligned or self._odd):
            return self._look_at_counts(needs)
        rows, count = self._rows, needs.cpus
        own, wanted = _POLICIES.index(needs.numa), _wanted(needs)
        bound, bind, required, whole, numa = self._terms(needs)
        forced = self._bind > 0
        usable = self._of_binding(self._usable, bind, required)
        conflicts = (
            (self._numa > 0) & (self._numa != own) if own else np.zeros(rows, np.bool_),
            bound & (needs.milli % MILLI != 0),
            bound & (self._per_core == 0),
            bound & forced & (self._bind != wanted) if needs.required else np.zeros(rows, np.bool_),
            bound & whole & (count % np.maximum(self._per_core, 1) != 0),
        )
        aligned = numa > 0
        each, together, known = self._in_zones(needs, bound, bind, required, whole)
        if beside is not None:
            each = each & (beside.zones | ~beside.told[:, np.newaxis])
            known = known & ~beside.unsure
        fits = each.any(axis=1)
        ends = (
            aligned & ~self._zones.any(axis=1),
            ~aligned & bound & (usable < count),
            (numa == _SINGLE) & ~fits & known,
            aligned & (numa != _SINGLE) & ~fits & ~together & known,
        )
        refused, left = np.zeros((len(REASONS), rows), np.bool_), np.ones(rows, np.bool_)
        for place, mask in enumerate((*conflicts, *ends)):
            if mask.any():  # as few of them
                refused[place] = mask & left
                left &= ~mask
        undecided = left & aligned & ~(fits & known)
        odd = bound & ~self._alike
        if odd.any():
            undecided |= odd & (left | refused[_LASTING:].any(axis=0))
        if undecided.any():
            refused[:, undecided] = False
        return Looked(refused, np.logical_or.reduce(refused[:_LASTING]), undecided)

    def _look_at_counts(self, needs: PodNeeds) -> Looked:
        """The same where no node has rules of its own, the pod is in no zones, and cores are alike: counts of CPUs say it all."""
        if not (needs.milli > 0 and needs.binds):
            return _all_take_it(self._rows)
        bind = _wanted(needs) if needs.required else 0
        masks = {_NOT_ENOUGH: self._usable[bind] < needs.cpus}
        if self._untold > self._rows - self.used:
            masks[_NO_TOPOLOGY] = self._per_core == 0
        if needs.milli % MILLI:
            masks[_NOT_WHOLE] = np.ones(self._rows, np.bool_)
        if bind == _FULL:
            masks[_NOT_MULTIPLE] = needs.cpus % np.maximum(self._per_core, 1) != 0
        if self._untold > self._rows - self.used and not needs.guarded:
            told = masks.pop(_NO_TOPOLOGY) ^ True
            masks = {place: mask & told for place, mask in masks.items()}
        if not [1 for mask in masks.values() if np.count_nonzero(mask[: self.used])]:
            return _all_take_it(self._rows)
        refused, left = np.zeros((len(REASONS), self._rows), np.bool_), np.ones(self._rows, np.bool_)
        for place in sorted(masks):
            np.logical_and(masks[place], left, out=refused[place])
            left &= ~masks[place]
        return Looked(refused, np.logical_or.reduce(refused[:_LASTING]), np.zeros(self._rows, np.bool_))

    def _terms(self, needs: PodNeeds) -> "_Terms":
        """On what terms a pod would be on each node."""
        rows, forced = self._rows, self._bind > 0
        own, wanted = _POLICIES.index(needs.numa), _wanted(needs)
        binds = np.full(rows, needs.binds) if needs.guarded else needs.binds & (self._per_core > 0)
        bound = binds | forced if needs.milli > 0 else np.zeros(rows, np.bool_)
        bind = np.full(rows, wanted) if needs.required else np.where(forced, self._bind, wanted)
        required = forced | needs.required
        numa = np.full(rows, own) if own else self._numa
        return _Terms(bound, bind, required, required & (bind == _FULL), numa)

    def _in_zones(
        self, needs: PodNeeds, bound: Mask, bind: Column, required: Mask, whole: Mask
    ) -> tuple[Mask, Mask, Mask]:
        """Which zones fit by themselves, where all have enough together, and where that says it all; of no meaning where a pod is in
        none.
        """
        if not needs.numa and not self._numa.any():
            nowhere = np.zeros(self._rows, np.bool_)
            return nowhere[:, np.newaxis], nowhere, nowhere
        most = self._most
        fits, together = self._zones[:, :most].copy(), np.ones(self._rows, np.bool_)
        asked = np.zeros(self._rows, np.bool_)
        for name, amount in needs.request:
            reported = self._reported.get(name)
            if reported is None:
                continue
            available = self._available[name][:, :most]
            if name == CPU:
                cpus = MILLI * self._of_binding(self._in_zone[:, :, :most], bind, required)
                step = (MILLI * np.where(whole, np.maximum(self._per_core, 1), 1))[:, np.newaxis]
                whole_steps = np.minimum(available, cpus) // step * step
                available = np.where(bound[:, np.newaxis], whole_steps, available)
            fits &= ~reported[:, np.newaxis] | (available >= amount)
            together &= ~reported | (available.sum(axis=1) >= amount)
            asked |= reported
        apart = fits & ~self._shared[:, :most] if needs.apart is Exclusive.REQUIRED else fits
        strict = needs.numa in (NUMAPolicy.RESTRICTED, NUMAPolicy.SINGLE_NUMA_NODE)
        strict_rows = np.full(self._rows, strict) | (self._numa > _POLICIES.index(NUMAPolicy.BEST_EFFORT))
        cpu = self._reported.get(CPU, np.zeros(self._rows, np.bool_))
        return np.where(strict_rows[:, np.newaxis], apart, fits), together, asked & (~bound | cpu)

    def scores(self, needs: PodNeeds, scored: ZoneRules) -> tuple[Mask, Column]:
        """Where a pod is kept in zones, and the scores of those: of the best zone that fits, else of all together. 0 to 100."""
        terms = self._terms(needs)
        if not terms.aligned.any():
            return terms.aligned, np.zeros(self._rows, np.int64)
        fits, _, _ = self._in_zones(needs, terms.bound, terms.bind, terms.required, terms.whole)
        shape = self._rows, self._most
        points, points_all = np.zeros(shape, np.int64), np.zeros(self._rows, np.int64)
        weights, weights_all = np.zeros(shape, np.int64), np.zeros(self._rows, np.int64)
        asked = dict(needs.request)
        for name, weight in scored.weights.items():
            if name not in self._offers:
                continue
            offers, free = self._offers[name][:, : self._most], self._available[name][:, : self._most]
            more = asked.get(name, 0)
            points += weight * _share(offers, offers - free + more, scored.strategy)
            weights += np.where(offers > 0, weight, 0)
            all_of, free_of_all = offers.sum(axis=1), free.sum(axis=1)
            points_all += weight * _share(all_of, all_of - free_of_all + more, scored.strategy)
            weights_all += np.where(all_of > 0, weight, 0)
        best = np.where(fits, points // np.maximum(weights, 1), -1).max(axis=1, initial=-1)
        return terms.aligned, np.where(best >= 0, best, points_all // np.maximum(weights_all, 1))

    def _of_binding(self, counts: _Zones, bind: Column, required: Mask) -> _Zones:
        """Of CPUs by binding those that count on each node: all that are free, where the binding is a wish."""
        return counts[np.where(required, bind, 0), np.arange(self._rows)]


class _Terms(NamedTuple):
    """Terms by row: whether a pod is bound, how, whether it has to be, in whole cores; and the number of the zone policy."""

    bound: Mask
    bind: Column
    required: Mask
    whole: Mask
    numa: Column

    @property
    def aligned(self) -> Mask:
        """Where it is kept in zones."""
        aligned: Mask = self.numa > 0
        return aligned


def _wanted(needs: PodNeeds) -> int:
    return _BINDS.index(needs.bind) if needs.bind in _BINDS else 0


def _share(offers: Column, requested: Column, strategy: Strategy) -> Column:
    """How full something would be, or how empty, 0 to 100; 0 where nothing is offered."""
    there = np.maximum(offers, 1)
    if strategy is Strategy.MOST_ALLOCATED:
        return np.where(offers > 0, np.minimum(requested, offers) * 100 // there, 0)
    return np.where((offers > 0) & (requested <= offers), (offers - requested) * 100 // there, 0)


def columns_of(rooms: Sequence[NodeRoom]) -> RoomColumns:
    """The columns of so many rooms."""
    columns = RoomColumns(len(rooms))
    for row, room in enumerate(rooms):
        columns.put(row, room)
    return columns
