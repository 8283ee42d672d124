"""The devices of all nodes with what pods have of them.

What a pod has is its own as long as it is there: it is taken when a node is chosen for it, or found on a pod that has one, and
given back once. Where a pod leaves its node in a trial, what it has is free until it is back. Nodes are told apart by
name; by row of the node table stands what is asked of all of them at once, in columns of NumPy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.device_fragmentation import KeptDrops
from koordpolicy.algorithms.device_pick import Card
from koordpolicy.cluster.device_policy import DevicePolicy
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.model.devices import NodeDevices
from koordpolicy.model.pod import PodKey
from koordpolicy.model.pod_devices import Shares
from koordpolicy.model.protocol import GPU_MODEL, GPU_PARTITION_POLICY
from koordpolicy.model.reading import Amounts

_KEPT: Final = 256
"""Sorts of pods of which it is kept what they would do to fragmentation."""

_WITHOUT_END: Final = np.iinfo(np.int64).max
"""What is free of a resource that a device does not have: it is not compared."""


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """What a pod has of the devices of a node."""

    pod: PodKey
    node: str
    shares: Shares
    uid: str = ""


@dataclass(slots=True)
class DeviceColumns:
    """The devices of one type on all nodes: row by row, device by device. What is free, and what there is, by resource."""

    there: NDArray[np.bool_]
    free: dict[str, NDArray[np.int64]]
    total: dict[str, NDArray[np.int64]]
    models: NDArray[np.object_]
    """The model of each node's devices, by the label of its Device object."""

    def fitting(self, each: Amounts, rows: Any, *, empty: bool = False) -> NDArray[np.int64]:
        """How many devices of each node have so much free; `empty` means if nobody had anything."""
        found: Mask = self.there[rows]
        for name, number in each.items():
            free = self.free.get(name)
            if free is None:
                continue
            if empty:
                total = self.total[name][rows]
                found = found & ((total >= number) | (free[rows] == _WITHOUT_END))
            else:
                found = found & (free[rows] >= number)
        fitting: NDArray[np.int64] = found.sum(axis=1)
        return fitting

    def measured(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What of a resource is free on each device, and what there is; none of what a device does not have."""
        if name not in self.total:
            none = np.zeros(self.there.shape, np.int64)
            return none, none
        total = self.total[name]
        return np.where(total > 0, self.free[name], 0), total

    def sums(self, name: str, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How much of a resource the devices of each node have, and how much of that is free."""
        if name not in self.total:
            none = np.zeros(len(self.there[rows]), np.int64)
            return none, none
        total = self.total[name][rows]
        return total.sum(axis=1), np.where(total > 0, self.free[name][rows], 0).sum(axis=1)


@dataclass(slots=True)
class _Node:
    devices: NodeDevices = field(default_factory=NodeDevices)
    listed: bool = False
    used: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    owners: dict[PodKey, DeviceClaim] = field(default_factory=dict)


class DeviceCards:
    """All of it. `version` is another one after each change."""

    def __init__(self, undo: UndoLog | None = None) -> None:
        self._undo = undo or UndoLog()
        self.policy: DevicePolicy | None = None
        self.version = 0
        self.linked = False
        """Whether some node may deal whole cards out in partitions alone."""
        self._nodes: dict[str, _Node] = {}
        self._claims: dict[PodKey, DeviceClaim] = {}
        self._rows: dict[str, int] = {}
        self._columns: dict[str, DeviceColumns] = {}
        self._stale: set[str] = set()
        self._listed: Mask | None = None
        self._drops: dict[tuple[str, int, int, int], KeptDrops] = {}

    def again(self) -> "DeviceCards":
        """The same devices and what is taken of them, without the rows of nodes."""
        found = DeviceCards(self._undo)
        found.version = self.version + 1
        found._nodes, found._claims, found.linked = self._nodes, self._claims, self.linked
        return found

    def begin(self, policy: DevicePolicy) -> None:
        """Deal out devices as a revision says."""
        self.policy = policy
        self.version += 1
        self._columns.clear()
        self._drops.clear()

    # --- nodes ----------------------------------------------------------------------------------

    def set(self, node: str, devices: NodeDevices) -> None:
        """A node has these devices."""
        known = self._node(node)
        known.devices, known.listed = devices, True
        self._listed = None
        self.linked = self.linked or bool(devices.labels.get(GPU_PARTITION_POLICY))
        self._changed(node)

    def remove(self, node: str) -> None:
        """Nothing is known of a node's devices any more: they count as not healthy, and what pods have stays theirs."""
        known = self._nodes.get(node)
        if known is not None:
            gone = tuple(replace(one, healthy=False) for one in known.devices.devices)
            known.devices = replace(known.devices, devices=gone)
            self._changed(node)

    def node_came(self, node: str, row: int) -> None:
        """A node has a row, the next one."""
        self._rows[node] = row
        self._columns.clear()
        self._listed = None
        self.version += 1

    def node_left(self, node: str, row: int, moved: str) -> None:
        """A node's row is gone, and the last row, of the node `moved`, has taken its number."""
        self._rows[moved] = row
        self._rows.pop(node, None)
        self._columns.clear()
        self._listed = None
        self.version += 1

    # --- what pods have ---------------------------------------------------------------------------

    def take(self, claim: DeviceClaim) -> None:
        """A pod has so much from now on. What it had before is given back."""
        before = self._claims.get(claim.pod)
        if before is not None:
            self.give(before)
        self._claims[claim.pod] = claim
        self._count(claim, 1)

    def give(self, claim: DeviceClaim) -> None:
        """A pod has nothing any more."""
        if self._claims.get(claim.pod) is claim:
            del self._claims[claim.pod]
            if claim.pod in self._node(claim.node).owners:
                self._count(claim, -1)

    @property
    def known(self) -> bool:
        """Whether an object says of any node what it has, or a pod has something: without, kubelets deal devices out."""
        return bool(self._nodes)

    @property
    def dealt(self) -> bool:
        """Whether any pod has anything."""
        return bool(self._claims)

    def came(self, pod: PodKey) -> None:
        """A pod is on its node, again perhaps."""
        claim = self._claims.get(pod)
        if claim is not None and pod not in self._node(claim.node).owners:
            self._count(claim, 1)
            if self._undo.depth:
                self._undo.note(lambda: self.left(pod))

    def left(self, pod: PodKey) -> None:
        """A pod is not on its node, as far as is tried."""
        claim = self._claims.get(pod)
        if claim is not None and pod in self._node(claim.node).owners:
            self._count(claim, -1)
            if self._undo.depth:
                self._undo.note(lambda: self.came(pod))

    def owners(self, node: str) -> Mapping[PodKey, DeviceClaim]:
        """Who has something of a node's devices."""
        known = self._nodes.get(node)
        return {} if known is None else known.owners

    def claim_of(self, pod: PodKey) -> DeviceClaim | None:
        """What a pod has."""
        return self._claims.get(pod)

    # --- as they are ------------------------------------------------------------------------------

    def knows(self, node: str) -> bool:
        """Whether a node's devices are listed by an object."""
        known = self._nodes.get(node)
        return known is not None and known.listed

    def devices(self, node: str) -> NodeDevices:
        """What is said of a node's devices."""
        return self._node(node).devices

    def model(self, node: str) -> str:
        """The model of a node's devices; empty where it is not said."""
        return self.devices(node).labels.get(GPU_MODEL, "")

    def drops(self, asked: tuple[str, int, int, int]) -> KeptDrops:
        """What is kept of drops of fragmentation for pods that ask alike: type, CPU, of each device, number of devices."""
        found = self._drops.get(asked)
        if found is None:
            if len(self._drops) >= _KEPT:
                del self._drops[next(iter(self._drops))]
            found = self._drops[asked] = KeptDrops()
        return found

    def cards(self, node: str, type: str) -> list[Card]:
        """The devices of a type on a node as they are now."""
        known = self._node(node)
        found: dict[int, Card] = {}
        for one in known.devices.devices:
            if one.type != type or one.minor in found:
                continue  # of two that cannot be told apart, the first is dealt out
            total = one.resources if one.healthy else {}
            used = known.used.get((type, one.minor), {})
            free = {name: max(0, number - used.get(name, 0)) for name, number in total.items()}
            found[one.minor] = Card(one.minor, total, free, one.numa, one.pcie)
        return list(found.values())

    def columns(self, type: str) -> DeviceColumns:
        """The devices of a type on all nodes."""
        for node in self._stale:
            row = self._rows.get(node)
            for known, columns in list(self._columns.items()):
                if row is None:
                    continue
                if not _write(columns, row, self.cards(node, known)):
                    del self._columns[known]
                else:
                    columns.models[row] = self.model(node)
        self._stale.clear()
        found = self._columns.get(type)
        if found is None:
            found = self._columns[type] = self._made(type)
        return found

    def listed(self) -> Mask:
        """The nodes whose devices are listed by an object."""
        if self._listed is None:
            self._listed = np.zeros(len(self._rows), np.bool_)
            for node, row in self._rows.items():
                self._listed[row] = self.knows(node)
        return self._listed

    def _made(self, type: str) -> DeviceColumns:
        cards = {row: self.cards(node, type) for node, row in self._rows.items() if self.knows(node)}
        width = max((len(one) for one in cards.values()), default=0)
        shape = len(self._rows), width
        names = {name for listed in cards.values() for card in listed for name in card.total}
        found = DeviceColumns(
            np.zeros(shape, np.bool_),
            {name: np.zeros(shape, np.int64) for name in names},
            {name: np.zeros(shape, np.int64) for name in names},
            np.full(len(self._rows), "", np.object_),
        )
        names_of = {row: node for node, row in self._rows.items()}
        for row, listed in cards.items():
            _write(found, row, listed)
            found.models[row] = self.model(names_of[row])
        return found

    def _count(self, claim: DeviceClaim, sign: int) -> None:
        known = self._node(claim.node)
        for type, shares in claim.shares.items():
            for share in shares:
                used = known.used.setdefault((type, share.minor), {})
                for name, number in share.resources.items():
                    used[name] = used.get(name, 0) + sign * number
                    if not used[name]:
                        del used[name]
                if not used:
                    del known.used[type, share.minor]
        if sign > 0:
            known.owners[claim.pod] = claim
        else:
            del known.owners[claim.pod]
        self._changed(claim.node)

    def _node(self, name: str) -> _Node:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = _Node()
        return found

    def _changed(self, node: str) -> None:
        self.version += 1
        if self._columns:
            self._stale.add(node)


def _write(columns: DeviceColumns, row: int, cards: list[Card]) -> bool:
    """Write the devices of one node; whether there is room for them."""
    width = columns.there.shape[1]
    names = {name for card in cards for name in card.total}
    if len(cards) > width or not names <= columns.free.keys() or row >= len(columns.there):
        return False
    columns.there[row] = [bool(card.total) for card in cards] + [False] * (width - len(cards))
    for name, free in columns.free.items():
        left = [card.free.get(name, _WITHOUT_END) for card in cards]
        free[row] = left + [0] * (width - len(cards))
        columns.total[name][row] = [card.total.get(name, 0) for card in cards] + [0] * (width - len(cards))
    return True
