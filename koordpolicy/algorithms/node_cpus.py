"""What pods hold of one node's CPUs and zones, and what is left: the account out of which pods are given theirs."""

from collections.abc import Collection, Hashable, Mapping
from typing import Final, Generic, TypeVar

from koordpolicy.algorithms.amplified import amplified_cpu
from koordpolicy.algorithms.cpu_accumulator import CPUExclusive, HeldCPUs
from koordpolicy.algorithms.cpu_binding import NodeRules
from koordpolicy.algorithms.numa_merge import ZoneUse
from koordpolicy.algorithms.zone_allocation import MILLI, NodeRoom
from koordpolicy.model.cpu_topology import Allocation, NodeCPUs
from koordpolicy.model.protocol import CPU
from koordpolicy.model.reading import Amounts

K = TypeVar("K", bound=Hashable)


class NodeAccount(Generic[K]):
    """Of one node. Pods are told apart by keys; whoever holds something twice holds what was said last."""

    __slots__ = (
        "_exclusive",
        "_held",
        "_offers",
        "_room",
        "_usable",
        "node",
        "reserved",
        "reserved_by",
        "rules",
    )

    def __init__(self, node: NodeCPUs, rules: NodeRules, reserved_by: Collection[str]) -> None:
        self.node, self.rules, self.reserved_by = node, rules, reserved_by
        self._held: dict[K, Allocation] = {}
        self._exclusive: dict[K, CPUExclusive] = {}
        self._room: NodeRoom | None = None
        self.reserved: Final = frozenset().union(
            *(cpus for who, cpus in node.reserved.items() if who in reserved_by)
        )
        """The CPUs that no pod is given."""
        self._usable: Final = frozenset(node.layout.cpus) - self.reserved
        self._offers: Final = {zone: self._offered(zone, amounts) for zone, amounts in node.zones.items()}

    @property
    def held(self) -> Mapping[K, Allocation]:
        """What each pod holds."""
        return self._held

    def hold(self, key: K, allocation: Allocation, exclusive: CPUExclusive = CPUExclusive.NONE) -> None:
        """A pod holds that from now on."""
        self._held[key] = allocation
        self._exclusive[key] = exclusive
        self._room = None

    def give_back(self, key: K) -> None:
        """A pod holds nothing any more."""
        if self._held.pop(key, None) is not None:
            del self._exclusive[key]
            self._room = None

    @property
    def room(self) -> NodeRoom:
        """What is left."""
        if self._room is None:
            self._room = self._left()
        return self._room

    def _left(self) -> NodeRoom:
        layout, rules, offers = self.node.layout, self.rules, self._offers
        references: dict[int, int] = {}
        for allocation in self._held.values():
            for cpu in allocation.cpus:
                if cpu in layout.core:  # what is told of others is about another machine
                    references[cpu] = references.get(cpu, 0) + 1
        taken = {cpu for cpu, count in references.items() if count >= rules.sharers}
        available = {zone: dict(amounts) for zone, amounts in offers.items()}
        uses = dict.fromkeys(offers, ZoneUse.IDLE)
        for allocation in self._held.values():
            self._take(available, allocation)
            self._use(uses, allocation)
        for amounts in available.values():
            for name, amount in amounts.items():
                amounts[name] = max(0, amount)
        return NodeRoom(
            layout,
            rules,
            self._usable - taken,
            self._exclusively(references),
            offers,
            available,
            uses,
            len(references),
        )

    def _offered(self, zone: int, amounts: Amounts) -> Amounts:
        """What a zone offers: less its reserved CPUs, times the ratio."""
        if CPU not in amounts:
            return amounts
        kept = MILLI * len(self.reserved & self.node.layout.zones.get(zone, frozenset()))
        return {**amounts, CPU: amplified_cpu(max(0, amounts[CPU] - kept), self.rules.ratio)}

    def _take(self, available: Mapping[int, dict[str, int]], allocation: Allocation) -> None:
        """Take off zones what a pod holds of them. CPUs of its own cost what they are sold for, also where no amounts were noted."""
        own: dict[int, int] = {}
        for cpu in allocation.cpus:
            zone = self.node.layout.zone.get(cpu)
            if zone is not None:
                own[zone] = own.get(zone, 0) + 1
        for zone in allocation.zones.keys() | own.keys():
            there = available.get(zone)
            if there is None:
                continue
            for name, amount in allocation.zones.get(zone, {}).items():
                if name in there and not (name == CPU and own.get(zone)):
                    there[name] -= amount
            if CPU in there and zone in own:
                there[CPU] -= amplified_cpu(MILLI * own[zone], self.rules.ratio)

    def _use(self, uses: dict[int, ZoneUse], allocation: Allocation) -> None:
        """Note whether pods with CPUs of their own lie in one zone or in several."""
        if not allocation.cpus:
            return
        zones = {self.node.layout.zone[cpu] for cpu in allocation.cpus if cpu in self.node.layout.zone}
        for zone in zones & uses.keys():
            if len(zones) > 1:
                uses[zone] = ZoneUse.SHARED
            elif uses[zone] is ZoneUse.IDLE:
                uses[zone] = ZoneUse.SINGLE

    def _exclusively(self, references: Mapping[int, int]) -> HeldCPUs:
        layout = self.node.layout
        by: dict[CPUExclusive, set[int]] = {
            CPUExclusive.PCPU_LEVEL: set(),
            CPUExclusive.NUMA_NODE_LEVEL: set(),
        }
        for key, exclusive in self._exclusive.items():
            where = layout.core if exclusive is CPUExclusive.PCPU_LEVEL else layout.zone
            if exclusive in by:
                by[exclusive].update(where[cpu] for cpu in self._held[key].cpus if cpu in where)
        return HeldCPUs(
            by[CPUExclusive.PCPU_LEVEL],
            by[CPUExclusive.NUMA_NODE_LEVEL],
            references if self.rules.sharers > 1 else {},
        )
