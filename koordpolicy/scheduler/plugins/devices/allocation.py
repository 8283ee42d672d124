"""Which devices of one node a pod gets, of each type that it asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

from koordpolicy.algorithms.device_need import DeviceNeed, HintStrategy, by_strategy
from koordpolicy.algorithms.device_partition import Partition, Partitions, best_partitions
from koordpolicy.algorithms.device_pick import (
    NO_NUMA,
    SCOPES,
    Card,
    Key,
    Scope,
    Unpicked,
    pick,
    pick_by_topology,
)
from koordpolicy.cluster.device_cards import DeviceCards
from koordpolicy.cluster.device_policy import DeviceSort
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.devices import Device, NodeDevices, VirtualFunction
from koordpolicy.model.pod_devices import DeviceHint, DeviceShare, DeviceWishes, Shares
from koordpolicy.model.protocol import CPU, GPU_MODEL, GPU_PARTITION_POLICY, GPU_VENDOR
from koordpolicy.model.reading import Amounts
from koordpolicy.scheduler.plugins.base import request_of
from koordpolicy.scheduler.plugins.devices.fragmentation import gradients

HONOR: Final = "Honor"
NO_TEMPLATE: Final = "no matched GPU shared resource template"
UNCHANGED: Final = 50
_NO_HINT: Final = DeviceHint()
_DEVICE_LEVEL: Final = "DeviceLevel"


def insufficient(type: str) -> str:
    """The reason of a node that has not enough devices of a type."""
    return f"Insufficient {type} devices"


def honors(devices: NodeDevices, wishes: DeviceWishes) -> bool:
    """Whether whole cards of a node are given in partitions alone."""
    return wishes.partition or devices.labels.get(GPU_PARTITION_POLICY) == HONOR


def allocate(
    cards: DeviceCards,
    node: str,
    pod: PodView,
    needs: Mapping[str, DeviceNeed],
    wishes: DeviceWishes,
    spare_cpu: int = 0,
    zones: int | None = None,
) -> Shares:
    """What a pod gets of a node's devices as they are, in some NUMA zones (a mask; None: in any). Raises Unpicked.

    `spare_cpu` is what the node has for it and others.
    """
    if not wishes.given:
        return _allocate(cards, node, pod, needs, wishes, spare_cpu, zones)
    cards.only(wishes.given)
    try:
        return _allocate(cards, node, pod, needs, wishes, spare_cpu, zones)
    finally:
        cards.only({})


def _allocate(
    cards: DeviceCards,
    node: str,
    pod: PodView,
    needs: Mapping[str, DeviceNeed],
    wishes: DeviceWishes,
    spare_cpu: int,
    zones: int | None,
) -> Shares:
    assert cards.policy is not None
    joint = [type for type in wishes.joint if type in needs and not _all_of_them(wishes, type)]
    if len(joint) < 2:
        joint = []
    found: dict[str, tuple[DeviceShare, ...]] = {}
    switches: frozenset[str] = frozenset()
    for type in [*joint, *(type for type in needs if type not in joint)]:
        sort = cards.policy.sorts[type]
        one = _Choice(cards, node, pod, sort, wishes, zones if sort.zoned else None)
        need = one.need(needs[type])
        one.measure(need, spare_cpu)
        if type in joint[1:]:
            minors = one.near(need, switches, together=wishes.same_pcie)
        else:
            minors = one.minors(need)
        if not minors:
            raise Unpicked("node(s) Insufficient primary device" if type in joint[:1] else insufficient(type))
        found[type] = tuple(one.share(minor, need) for minor in minors)
        if type in joint[:1]:
            switches = one.switches(minors)
    return found


class Dealing(NamedTuple):
    """All that says what a pod gets of a node's devices. `lender` is the UID of the pod out of whose claim it takes, empty for none;
    `restricted` says that it takes out of nothing else.
    """

    cards: DeviceCards
    node: str
    pod: PodView
    needs: Mapping[str, DeviceNeed]
    wishes: DeviceWishes
    spare_cpu: int = 0
    lender: str = ""
    restricted: bool = False

    def shares(self, zones: int | None = None) -> Shares:
        """What it gets in some NUMA zones (a mask; None: in any). Raises Unpicked."""
        cards = self.cards
        if not self.lender:
            return self._allocated(zones)
        with cards.lent(self.node, self.lender) as kept:
            if kept:
                # Out of what is kept for it, before anything else.
                cards.only(kept)
                try:
                    return self._allocated(zones)
                except Unpicked:
                    if self.restricted:
                        raise
                cards.only({})
            return self._allocated(zones)

    def _allocated(self, zones: int | None) -> Shares:
        return allocate(self.cards, self.node, self.pod, self.needs, self.wishes, self.spare_cpu, zones)


def _all_of_them(wishes: DeviceWishes, type: str) -> bool:
    hint = wishes.hints.get(type)
    return hint is not None and hint.strategy == HintStrategy.APPLY_FOR_ALL


class _Choice:
    """The devices of one type on one node, of which a pod is to get some."""

    __slots__ = (
        "_by_minor",
        "_cards",
        "_described",
        "_devices",
        "_elsewhere",
        "_functions",
        "_gradients",
        "_hint",
        "_key",
        "_node",
        "_of",
        "_pod",
        "_sort",
        "_wishes",
    )

    def __init__(
        self,
        cards: DeviceCards,
        node: str,
        pod: PodView,
        sort: DeviceSort,
        wishes: DeviceWishes,
        zones: int | None,
    ) -> None:
        self._sort, self._wishes, self._pod = sort, wishes, pod
        self._of, self._node = cards, node
        # The key refers to these and not to all of this: each pod would leave a circle for the collector of garbage else.
        measured: dict[int, int] = {}
        self._gradients = measured
        self._hint = wishes.hints.get(sort.type, _NO_HINT)
        self._devices = cards.devices(node)
        described: dict[int, Device] = {}
        for device in self._devices.devices:
            if device.type == sort.type:
                described.setdefault(device.minor, device)
        self._cards = cards.cards(node, sort.type)
        self._elsewhere: list[int] = []
        """Devices in use that the pod may not have."""
        if zones is not None:
            self._elsewhere = [card.minor for card in self._cards if card.used and not _lies_in(card, zones)]
            self._cards = [card for card in self._cards if _lies_in(card, zones)]
        if self._hint is not _NO_HINT:
            matches = self._hint.selector.matches
            self._cards = [card for card in self._cards if matches(described[card.minor].labels)]
        self._functions = self._free_functions(described) if self._hint.functions is not None else None
        self._by_minor = {card.minor: card for card in self._cards}
        self._described = described
        self._key: Key = lambda card: sort.key(
            card, described[card.minor], pod.facts, measured.get(card.minor, UNCHANGED)
        )

    def need(self, asked: DeviceNeed) -> DeviceNeed:
        """What is asked for as the pod's hint has it. Raises Unpicked."""
        if self._functions is not None and not any(
            one.functions for one in self._devices.devices if one.type == self._sort.type
        ):
            reason = f"node(s) Insufficient {self._sort.type} VirtualFunctions"
            raise Unpicked(reason, resolvable=False)
        alone = self._hint.exclusive == _DEVICE_LEVEL
        found = by_strategy(asked, self._hint.strategy, len(self._cards), alone=alone)
        if not found.count or len(self._cards) < found.count:
            raise Unpicked(insufficient(self._sort.type), resolvable=False)
        return found

    def _free_functions(self, described: Mapping[int, Device]) -> dict[int, VirtualFunction]:
        """The virtual function that a pod would get of each device: the first by its address, of the groups that it wants."""
        assert self._hint.functions is not None
        chosen = {one.minor: one.functions for one in self._wishes.given.get(self._sort.type, ())}
        found = {}
        for card in self._cards:
            free = [
                one
                for group in described[card.minor].functions
                if self._hint.functions.matches(group.labels)
                for one in group.functions
                if not self._of.function_taken(self._node, self._sort.type, card.minor, one.bus)
                and (not chosen.get(card.minor) or one in chosen[card.minor])
            ]
            if free:
                found[card.minor] = min(free, key=attrgetter("bus"))
        return found

    @property
    def _able(self) -> list[Card]:
        """The devices that have a virtual function left, where the pod wants one."""
        functions = self._functions
        return self._cards if functions is None else [card for card in self._cards if card.minor in functions]

    def measure(self, need: DeviceNeed, spare_cpu: int) -> None:
        """Find out what each device would mean for usual pods, where policy names some."""
        if self._sort.usual is not None:
            asked = request_of(self._pod).get(CPU, 0)
            found = gradients(self._sort, self._of, self._cards, self._node, need, spare_cpu, asked)
            self._gradients.clear()
            self._gradients.update(found)

    def minors(self, need: DeviceNeed) -> Sequence[int]:
        """Those that a pod gets; none where there are not enough. Raises Unpicked."""
        if self._sort.by_template(need) and not self._templates(need):
            raise Unpicked(NO_TEMPLATE, resolvable=False)
        if not need.shared and self._sort.left:
            table, honored = self._table(), honors(self._devices, self._wishes)
            if table or honored:  # most nodes have none
                try:
                    return self._partition(need, table)
                except Unpicked:
                    if honored:
                        raise
        scope = SCOPES.get(self._hint.scope, Scope.DEVICE)
        if self._sort.by_topology:
            try:
                return pick_by_topology(self._able, need, self._key, scope)
            except Unpicked as why:
                if scope or why.resolvable:
                    raise
        return pick(self._able, need, self._key)

    def _templates(self, need: DeviceNeed) -> list[str]:
        """The templates of the node's devices that have what is asked for, and nothing else."""
        labels = self._devices.labels
        model = f"{labels.get(GPU_VENDOR, '')}-{labels.get(GPU_MODEL, '')}"
        return [name for name, has in self._sort.templates.get(model, {}).items() if has == need.each]

    def _partition(self, need: DeviceNeed, table: Partitions) -> Sequence[int]:
        return best_partitions(
            table,
            need.count,
            [*self._elsewhere, *(card.minor for card in self._cards if card.used)],
            [card.minor for card in self._able if card.total],
            self._sort.left,
            first_group_only=self._wishes.restricted,
            best_first=self._sort.best_first,
            bandwidth=self._wishes.bandwidth,
        )[0]

    def _table(self) -> Partitions:
        if self._devices.partitions:
            return {
                size: [Partition(*one) for one in listed] for size, listed in self._devices.partitions.items()
            }
        sizes = self._sort.sizes.get(self._devices.labels.get(GPU_MODEL, ""), ())
        return {
            size: [Partition(frozenset(range(at, at + size))) for at in range(0, max(sizes) + 1 - size, size)]
            for size in sizes
        }

    def near(self, need: DeviceNeed, switches: frozenset[str], *, together: bool) -> Sequence[int]:
        """Those near others that the pod has got, at these switches. Raises Unpicked."""
        if together:
            need = replace(need, count=max(need.count, len(switches)))
        found = pick(self._able, need, self._key, (), switches, max(need.count, len(switches)))
        if together and self.switches(found) != switches:
            raise Unpicked("node(s) Device Joint-Allocate rules violation")
        return found

    def switches(self, minors: Sequence[int]) -> frozenset[str]:
        """The PCIe switches of some devices."""
        return frozenset(self._by_minor[minor].pcie for minor in minors)

    def share(self, minor: int, need: DeviceNeed) -> DeviceShare:
        """What a pod gets of a device, what follows from that too."""
        card, functions = self._by_minor[minor], self._functions
        own = () if functions is None else (functions[minor],)
        named = self._templates(need) if self._sort.by_template(need) else []
        template = named[0] if len(named) == 1 else ""
        return DeviceShare(
            minor, filled(card, need.each, self._sort), self._described[minor].id, own, template
        )


def _lies_in(card: Card, zones: int) -> bool:
    """Whether a device is in one of some zones; one of which that is not said is in all."""
    return card.numa == NO_NUMA or bool(zones >> card.numa & 1)


def filled(card: Card, each: Amounts, sort: DeviceSort) -> Amounts:
    """The same share in the words that the pod has left out: bytes of percents, percents of bytes."""
    measured, found = sort.words.measured, dict(each)
    for sized in sorted(sort.words.sized):
        total = card.total.get(sized, 0)
        if total and measured in each and sized not in each:
            found[sized] = each[measured] * total // 100
        elif total and sized in each and measured not in each and measured in card.total:
            found[measured] = each[sized] * 100 // total
    return found
