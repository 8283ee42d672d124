"""The devices of all nodes with what pods have of them.

What a pod has is its own as long as it is there: it is taken when a node is chosen for it, or found on a pod that has one, and
given back once. Where a pod leaves its node in a trial, what it has is free until it is back. Nodes are told apart by
name; by row of the node table stands what is asked of all of them at once, in columns of NumPy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.device_columns import DeviceColumns
from koordpolicy.algorithms.device_fragmentation import KeptFragmentation
from koordpolicy.algorithms.device_pick import Card
from koordpolicy.cluster.device_policy import DevicePolicy
from koordpolicy.cluster.device_scores import DeviceScores, DevicesState, sorts_of
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.model.devices import NodeDevices
from koordpolicy.model.pod import PodKey
from koordpolicy.model.pod_devices import Shares
from koordpolicy.model.protocol import GPU_MODEL, GPU_PARTITION_POLICY

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """What a pod has of the devices of a node."""

    pod: PodKey
    node: str
    shares: Shares
    uid: str = ""


@dataclass(slots=True)
class _Kept(Generic[T]):
    """What is kept of nodes by the rows of some columns, and the rows that have changed since."""

    columns: DeviceColumns
    changed: set[int]
    kept: T


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
        self._named: dict[int, str] = {}
        self._columns: dict[str, DeviceColumns] = {}
        self._stale: set[str] = set()
        self._listed: Mask | None = None
        self._fragmentation: dict[str, _Kept[KeptFragmentation]] = {}
        self._scores: dict[str, _Kept[DeviceScores]] = {}

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
        self._fragmentation.clear()
        self._scores.clear()

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
        self._rows[node], self._named[row] = row, node
        self._columns.clear()
        self._listed = None
        self.version += 1

    def node_left(self, node: str, row: int, moved: str) -> None:
        """A node's row is gone, and the last row, of the node `moved`, has taken its number."""
        self._named.pop(self._rows.get(moved, row), None)
        self._rows[moved], self._named[row] = row, moved
        if self._rows.pop(node, None) == row and moved == node:
            del self._named[row]
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

    def fragmentation(self, type: str) -> KeptFragmentation | None:
        """What usual pods could not use of devices of a type, up to date; None where policy names none."""
        sort = None if self.policy is None else self.policy.sorts.get(type)
        if sort is None or sort.usual is None:
            return None
        columns, known = self.columns(type), self._fragmentation.get(type)
        if known is None or known.columns is not columns:
            kept = KeptFragmentation(sort.usual) if known is None else known.kept
            known = self._fragmentation[type] = _Kept(columns, columns.watch(), kept)
            kept.follow(columns.measured(sort.words.measured), columns.models)
        elif known.changed:
            known.kept.follow(columns.measured(sort.words.measured), columns.models, sorted(known.changed))
        known.changed.clear()
        return known.kept

    def scores(self, type: str) -> DeviceScores:
        """What policy says of nodes by their devices of a type, up to date."""
        columns, known = self.columns(type), self._scores.get(type)

        def state_of(row: int) -> DevicesState:
            return self._state(self._named[row], type)

        if known is None or known.columns is not columns:
            kept = DeviceScores() if known is None else known.kept
            known = self._scores[type] = _Kept(columns, columns.watch(), kept)
            kept.follow(len(self._rows), None, state_of)
        elif known.changed:
            known.kept.follow(len(self._rows), sorted(known.changed), state_of)
        known.changed.clear()
        return known.kept

    def _state(self, node: str, type: str) -> DevicesState:
        """The devices of a type on a node, and who has them, as policy tells nodes apart."""
        assert self.policy is not None
        measured = self.policy.sorts[type].words.measured
        free = [card.percent(measured) for card in self.cards(node, type) if card.total]
        pods = [
            (len(shares), shares[0].resources.get(measured, 0))
            for claim in self.owners(node).values()
            if (shares := claim.shares.get(type))
        ]
        return DevicesState(tuple(sorted(free)), sorts_of(pods))

    def row(self, node: str) -> int | None:
        """The row of a node."""
        return self._rows.get(node)

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
            if row is None:
                continue
            for known, columns in list(self._columns.items()):
                if not columns.put(row, self.cards(node, known), self.model(node)):
                    del self._columns[known]
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
        names = {name for listed in cards.values() for card in listed for name in card.total}
        found = DeviceColumns.of(len(self._rows), width, names)
        for row, listed in cards.items():
            found.put(row, listed, self.model(self._named[row]))
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
