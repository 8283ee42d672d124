"""The devices of all nodes with what pods have of them.

What a pod has is its own as long as it is there: it is taken when a node is chosen for it, or found on a pod that has one, and
given back once. Where a pod leaves its node in a trial, what it has is free until it is back. Nodes are told apart by
name; by row of the node table stands what is asked of all of them at once, in columns of NumPy.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.device_columns import DeviceColumns
from koordpolicy.algorithms.device_fragmentation import KeptFragmentation
from koordpolicy.algorithms.device_pick import Card
from koordpolicy.cluster.claims import ClaimLedger
from koordpolicy.cluster.device_policy import DevicePolicy
from koordpolicy.cluster.device_scores import DeviceScores, DevicesState, sorts_of
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.model.devices import NodeDevices
from koordpolicy.model.pod import PodKey
from koordpolicy.model.pod_devices import DeviceShare, Shares
from koordpolicy.model.protocol import GPU_MODEL, GPU_PARTITION_POLICY, SECONDARY_DEVICES_PLANNED
from koordpolicy.model.reading import NO_TEXT, NOTHING, Amounts

T = TypeVar("T")


class DeviceClaim(NamedTuple):
    """What a pod has of the devices of a node: a reserve pod, too, out of whose claim others take (`lender` is its UID)."""

    pod: PodKey
    node: str
    shares: Shares
    uid: str = ""
    lender: str = ""
    reserve: bool = False
    said: Mapping[str, str] = NO_TEXT
    """What stands in other annotations of the pod, for whom policy says that."""


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
    functions: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    """How many pods have a virtual function: by type, minor, bus; more than one where annotations say so."""
    cards: dict[str, list[Card]] = field(default_factory=dict)
    """As they are now, by type, once somebody has asked."""

    def card(self, card: Card, type: str, most: Amounts | None = None) -> Card:
        """A device as it is now, of which no more than `most` is dealt out."""
        used, total = self.used.get((type, card.minor)), card.total
        if used is None and most is None:
            return card if card.free is total else replace(card, free=total)
        taken = used or NOTHING
        free = {name: max(0, number - taken.get(name, 0)) for name, number in total.items()}
        if most is not None:
            free = {name: min(number, most.get(name, number)) for name, number in free.items()}
        return Card(card.minor, total, free, card.numa, card.pcie)


class DeviceCards:
    """All of it. `version` is another one after each change."""

    def __init__(self, undo: UndoLog | None = None) -> None:
        self._undo = undo or UndoLog()
        self.policy: DevicePolicy | None = None
        self.version = 0
        self.linked = False
        """Whether some node may deal whole cards out in partitions alone."""
        self._nodes: dict[str, _Node] = {}
        self.not_planned: dict[str, None] = {}
        """The nodes whose Device object says that their secondary devices are not well planned."""
        self._claims = ClaimLedger[DeviceClaim](self._undo, self._hold, self._release, less)
        self.dealt: Mapping[PodKey, DeviceClaim] = self._claims.held
        """What pods have. An attribute, as it is asked of every pod that comes or goes."""
        self._only: dict[str, dict[int, Amounts]] = {}
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
        found._nodes, found.linked, found.not_planned = self._nodes, self.linked, self.not_planned
        found._claims = self._claims.again(found._hold, found._release)
        found.dealt = found._claims.held
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
        if devices.labels.get(SECONDARY_DEVICES_PLANNED) == "false":
            self.not_planned[node] = None
        else:
            self.not_planned.pop(node, None)
        known.cards.clear()
        self._listed = None
        self.linked = self.linked or bool(devices.labels.get(GPU_PARTITION_POLICY))
        self._changed(node)

    def remove(self, node: str) -> None:
        """Nothing is known of a node's devices any more: they count as not healthy, and what pods have stays theirs."""
        known = self._nodes.get(node)
        self.not_planned.pop(node, None)
        if known is not None:
            gone = tuple(replace(one, healthy=False) for one in known.devices.devices)
            known.devices = replace(known.devices, devices=gone)
            known.cards.clear()
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
        self._claims.take(claim)

    def give(self, claim: DeviceClaim) -> None:
        """A pod has nothing any more."""
        self._claims.give(claim)

    @property
    def known(self) -> bool:
        """Whether an object says of any node what it has, or a pod has something: without, kubelets deal devices out."""
        return bool(self._nodes)

    def came(self, pod: PodKey) -> None:
        """A pod is on its node, again perhaps."""
        self._claims.came(pod)

    def left(self, pod: PodKey) -> None:
        """A pod is not on its node, as far as is tried."""
        self._claims.left(pod)

    def owners(self, node: str) -> Mapping[PodKey, DeviceClaim]:
        """Who has something of a node's devices; a reserve pod what its owners have not."""
        return self._claims.on(node)

    def claim_of(self, pod: PodKey) -> DeviceClaim | None:
        """What a pod has."""
        return self._claims.of(pod)

    @contextmanager
    def lent(self, node: str, lender: str) -> Iterator[Shares]:
        """What the pod of a UID has on a node is free meanwhile: whoever takes out of it finds it so. Gives what that is."""
        kept = self._claims.kept_by(node, lender)
        if kept is None:
            yield {}
            return
        self.left(kept.pod)
        try:
            yield kept.shares
        finally:
            self._only = {}
            self.came(kept.pod)

    def only(self, shares: Shares) -> None:
        """Deal out no more than that of these types, as long as it is lent."""
        self._only = {type: {one.minor: one.resources for one in listed} for type, listed in shares.items()}

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
        """The devices of a type on a node as they are now. Not to be written."""
        known, only = self._node(node), self._only.get(type) if self._only else None
        listed = None if only is not None else known.cards.get(type)
        if listed is not None:
            return listed
        found: dict[int, Card] = {}
        for one in known.devices.devices:
            if one.type != type or one.minor in found:
                continue  # of two that cannot be told apart, the first is dealt out
            if only is None or one.minor in only:
                total = one.resources if one.healthy else NOTHING
                most = None if only is None else only[one.minor]
                found[one.minor] = known.card(Card(one.minor, total, total, one.numa, one.pcie), type, most)
        listed = list(found.values())
        if only is None:
            known.cards[type] = listed
        return listed

    def function_taken(self, node: str, type: str, minor: int, bus: str) -> bool:
        """Whether a pod has a virtual function of a device."""
        known = self._nodes.get(node)
        return known is not None and (type, minor, bus) in known.functions

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
        most: dict[str, int] = {}
        for listed in cards.values():
            for card in listed:
                for name, total in card.total.items():
                    most[name] = max(total, most.get(name, 0))
        found = DeviceColumns.of(len(self._rows), width, most)
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
                for one in share.functions:
                    at = type, share.minor, one.bus
                    known.functions[at] += sign
                    if not known.functions[at]:
                        del known.functions[at]
            if type in known.cards:
                minors = {share.minor for share in shares}
                known.cards[type] = [
                    known.card(card, type) if card.minor in minors else card for card in known.cards[type]
                ]
        self._changed(claim.node)

    def _hold(self, claim: DeviceClaim) -> None:
        self._count(claim, 1)

    def _release(self, claim: DeviceClaim) -> None:
        self._count(claim, -1)

    def _node(self, name: str) -> _Node:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = _Node()
        return found

    def _changed(self, node: str) -> None:
        self.version += 1
        if self._columns:
            self._stale.add(node)


def less(claim: DeviceClaim, others: Sequence[DeviceClaim]) -> DeviceClaim:
    """What of a claim these have not, who take out of it."""
    taken: dict[tuple[str, int], dict[str, int]] = {}
    for other in others:
        for type, shares in other.shares.items():
            for share in shares:
                of = taken.setdefault((type, share.minor), {})
                for name, number in share.resources.items():
                    of[name] = of.get(name, 0) + number
    left: dict[str, tuple[DeviceShare, ...]] = {}
    for type, shares in claim.shares.items():
        kept = [
            share._replace(
                resources={
                    name: number - taken.get((type, share.minor), {}).get(name, 0)
                    for name, number in share.resources.items()
                    if number > taken.get((type, share.minor), {}).get(name, 0)
                }
            )
            for share in shares
        ]
        if found := tuple(share for share in kept if share.resources):
            left[type] = found
    return claim._replace(shares=left)
