"""The devices of one type on all nodes, row by row and device by device, for what is asked of all of them at once.

Shapes: N nodes, W devices at most on one. What is added up over the devices of a node is kept added up: of one decision to the
next, one row differs.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.device_pick import Card
from koordpolicy.model.reading import Amounts

Whole = NDArray[np.int64]

_WITHOUT_END: Final = np.iinfo(np.int64).max
"""What is free of a resource that a device does not have: it is not compared."""

_BYTES: Final = np.iinfo(np.int8).max
"""Devices of a node that a byte can count."""

EVERY: Final = slice(None)
"""All rows."""


@dataclass(slots=True)
class DeviceColumns:
    """What is free, and what there is, of each resource (N, W), and in all on a node (N). `models` by the label of Device objects (N).

    `watched` are the rows that were written since each of those who keep something by rows looked at them.
    """

    there: Mask
    free: dict[str, Whole]
    total: dict[str, Whole]
    free_of_node: dict[str, Whole]
    total_of_node: dict[str, Whole]
    models: NDArray[np.object_]
    watched: list[set[int]] = field(default_factory=list)

    @staticmethod
    def of(nodes: int, width: int, resources: Collection[str]) -> "DeviceColumns":
        """Columns without any device yet."""
        # Node after node for each place, not place after place for each node: what is counted over places is then five times as fast.
        shape = nodes, width
        return DeviceColumns(
            np.zeros(shape, np.bool_, order="F"),
            {name: np.zeros(shape, np.int64, order="F") for name in resources},
            {name: np.zeros(shape, np.int64, order="F") for name in resources},
            {name: np.zeros(nodes, np.int64) for name in resources},
            {name: np.zeros(nodes, np.int64) for name in resources},
            np.full(nodes, "", np.object_),
        )

    def put(self, row: int, cards: Sequence[Card], model: str) -> bool:
        """Write the devices of one node; whether there is room for them."""
        width = self.there.shape[1]
        if len(cards) > width or row >= len(self.there):
            return False
        if not all(name in self.free for card in cards for name in card.total):
            return False
        none = [0] * (width - len(cards))
        self.there[row] = [bool(card.total) for card in cards] + none
        for name, free in self.free.items():
            totals = [card.total.get(name, 0) for card in cards]
            left = [card.free.get(name, _WITHOUT_END) for card in cards]
            free[row], self.total[name][row] = left + none, totals + none
            self.total_of_node[name][row] = sum(totals)
            self.free_of_node[name][row] = sum(
                number for number, total in zip(left, totals, strict=True) if total
            )
        self.models[row] = model
        for rows in self.watched:
            rows.add(row)
        return True

    def watch(self) -> set[int]:
        """The rows that will be written, to be emptied by who looks at them."""
        self.watched.append(set())
        return self.watched[-1]

    def fitting(self, each: Amounts, rows: Any = EVERY, *, empty: bool = False) -> NDArray[Any]:
        """How many devices of each node have so much free; `empty` means if nobody had anything."""
        found: Mask = self.there[rows]
        for name, number in each.items():
            free = self.free.get(name)
            if free is None:
                continue
            if empty:
                found = found & ((self.total[name][rows] >= number) | (free[rows] == _WITHOUT_END))
            else:
                found = found & (free[rows] >= number)
        if found.shape[1] > _BYTES:
            many: NDArray[np.int64] = found.sum(axis=1)
            return many
        counted: NDArray[np.int8] = np.add.reduce(found.view(np.int8), axis=1, dtype=np.int8)
        return counted

    def measured(self, name: str, rows: Any = EVERY) -> Whole:
        """What of a resource is free on each device; nothing of what a device does not have."""
        if name not in self.total:
            return np.zeros(self.there[rows].shape, np.int64)
        return np.where(self.total[name][rows] > 0, self.free[name][rows], 0)

    def sums(self, name: str, rows: Any = EVERY) -> tuple[Whole, Whole]:
        """How much of a resource the devices of each node have, and how much of that is free."""
        if name not in self.total:
            none = np.zeros(len(self.there[rows]), np.int64)
            return none, none
        return self.total_of_node[name][rows], self.free_of_node[name][rows]


_EXACT: Final = 1 << 40
"""Wholes of which doubles tell one part more from one less, at least where they are counted in hundreds."""


def shares(parts: Whole, wholes: Whole, of: int) -> Whole:
    """How much parts are of wholes, in whole `of`s, rounded down; 0 where the whole is nothing."""
    there = np.maximum(wholes, 1)
    if of <= 100 and there.max(initial=1) < _EXACT:
        # A tenth of the time of a division of whole numbers.
        found: Whole = np.floor(parts * float(of) / there).astype(np.int64)
    else:
        found = parts * of // there
    found[wholes <= 0] = 0
    return found
