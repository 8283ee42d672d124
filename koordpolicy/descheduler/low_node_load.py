"""Pods leave nodes that use too much for nodes of their pool that use little: LowNodeLoad, with thresholds by policy."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.descheduling.anomaly import AnomalyCondition, Detectors
from koordpolicy.algorithms.descheduling.overuse import (
    LoadGroup,
    LoadThresholds,
    ThresholdShares,
    amounts_of,
    groups_of,
    shares_table,
)
from koordpolicy.algorithms.descheduling.overuse_reason import overuse_reason
from koordpolicy.algorithms.descheduling.relief_round import (
    PODS,
    PoolTable,
    ReliefRound,
    ReliefRules,
    ReliefStop,
)
from koordpolicy.algorithms.work import Work
from koordpolicy.descheduler.moves import Moves
from koordpolicy.descheduler.rules import LoadRules, NodeLoadRules, Stays, StrategyRules
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import Amounts
from koordpolicy.model.time import NANOSECONDS

_BASIC: Final = ("cpu", "memory")
_MOST: Final = 1 << 57
"""Beyond all that machines have, and so far below 64 bits that moves of a round can be added up."""


@dataclass(slots=True)
class LoadMemory:
    """For how long nodes were too full: by all pods, and by prod pods. Kept from round to round, lost with the process, so that after a
    restart nodes are watched anew before anything moves. `impatient`: every node that is too full has been so for long enough.
    """

    impatient: bool = False

    nodes: Detectors = field(default_factory=Detectors)
    prod: Detectors = field(default_factory=Detectors)


@dataclass(eq=False, frozen=True, slots=True)
class LoadedPod:
    """A pod as one strategy counts it."""

    seen: SeenPod
    usage: Amounts | None
    prod: bool


NEITHER: Final = "neither"
_GROUPED: Final = {
    LoadGroup.HIGH: "high",
    LoadGroup.PROD_HIGH: "prod high",
    LoadGroup.LOW: "low",
    LoadGroup.BOTH_LOW: "low and prod low",
    LoadGroup.PROD_LOW: "prod low",
    LoadGroup.APPROPRIATE: NEITHER,
    LoadGroup.IGNORED: "of unknown use",
}
_WITHOUT_PROD: Final = {
    **_GROUPED,
    LoadGroup.PROD_LOW: _GROUPED[LoadGroup.APPROPRIATE],
    LoadGroup.BOTH_LOW: _GROUPED[LoadGroup.LOW],
}
"""Without thresholds for prod pods every node is low by them."""


@dataclass(frozen=True, slots=True)
class PoolReport:
    """What was found of one pool: its nodes by group, why nothing moved (None where something did), what nodes used
    before, and what targets could take. The table is as moves leave it.
    """

    pool: str
    groups: Mapping[LoadGroup, Sequence[str]]
    stop: ReliefStop | None
    table: PoolTable
    before: NDArray[np.int64]
    budget: Mapping[str, int] | None = None

    @property
    def words(self) -> Mapping[LoadGroup, str]:
        """What groups are called; of prod pods only where some threshold is about them."""
        return _GROUPED if (self.table.prod_thresholds.low < self.table.capacity).any() else _WITHOUT_PROD

    def is_too_full(self, node: str) -> bool:
        """Whether pods are to leave a node."""
        return any(node in self.groups.get(one, ()) for one in (LoadGroup.HIGH, LoadGroup.PROD_HIGH))

    def group_of(self, node: str) -> str:
        """How a node counts, in words; empty where it is in another pool."""
        return next((self.words[group] for group, names in self.groups.items() if node in names), "")


@dataclass(frozen=True, slots=True)
class LoadPool:
    """The nodes of a pool, what policy says of each, and their table; `known` are those of whose use something is known."""

    name: str
    nodes: Sequence[SeenNode]
    pods: Sequence[Sequence[LoadedPod]]
    said: Sequence[NodeLoadRules]
    known: NDArray[np.bool_]
    table: PoolTable


def balance(
    nodes: Sequence[SeenNode], rules: StrategyRules, moves: Moves, memory: LoadMemory, interval: float = 0.0
) -> Work[list[PoolReport]]:
    """What goes for the sake of load, pool by pool. `interval`: seconds from round to round."""
    assert rules.load is not None
    found = []
    pools = yield from pools_of(nodes, rules.load, moves.now)
    for pool in pools:
        report = yield from _Balancing(pool, rules, rules.load, moves, memory, interval).run()
        found.append(report)
    return found


def pools_of(nodes: Sequence[SeenNode], rules: LoadRules, now: int) -> Work[list[LoadPool]]:
    """The pools of some nodes. A node of which policy cannot tell is in none."""
    by_pool: dict[str, list[tuple[SeenNode, NodeLoadRules]]] = defaultdict(list)
    for node in nodes:
        yield
        try:
            said = rules.of_node(node.facts, now)
        except CelError:
            continue
        by_pool[said.pool].append((node, said))
    found = []
    for name, members in by_pool.items():
        pool = yield from _pool(
            name, [node for node, _ in members], [said for _, said in members], rules, now
        )
        found.append(pool)
    return found


def _pool(
    name: str, nodes: Sequence[SeenNode], said: Sequence[NodeLoadRules], rules: LoadRules, now: int
) -> Work[LoadPool]:
    named = {
        resource
        for one in said
        for shares in (one.high, one.low, one.prod_high, one.prod_low)
        for resource in shares
    }
    resources = tuple(sorted(named.union(rules.resources)))
    known = np.array(
        [rules.by_requests or _reported(node, one, now) for node, one in zip(nodes, said, strict=True)],
        np.bool_,
    )
    pods = []
    for node in nodes:
        yield
        pods.append(
            [
                LoadedPod(
                    one, _counted(one.request if rules.by_requests else one.usage), rules.prod(one.facts, now)
                )
                for one in node.pods
            ]
        )
    usage = np.array([_used(node, resources, rules) for node in nodes], np.int64)
    prod_usage = np.array([_used_by_prod(on_node, resources) for on_node in pods], np.int64)
    capacity = np.array([_row(_capacity(node), resources) for node in nodes], np.int64)
    deviation = np.array([one.deviation for one in said], np.bool_)[:, None]

    def thresholds(low: str, high: str, used: NDArray[np.int64]) -> LoadThresholds:
        low_shares = shares_table([getattr(one, low) for one in said], resources)
        high_shares = shares_table([getattr(one, high) for one in said], resources)
        by_kind = [
            amounts_of(ThresholdShares(low_shares, high_shares, kind), used, capacity, known)
            for kind in (False, True)
        ]
        return LoadThresholds(
            np.where(deviation, by_kind[1].low, by_kind[0].low),
            np.where(deviation, by_kind[1].high, by_kind[0].high),
        )

    whole, prod = thresholds("low", "high", usage), thresholds("prod_low", "prod_high", prod_usage)
    unschedulable = np.array([node.sight.node.unschedulable for node in nodes], np.bool_)
    groups = groups_of(usage, prod_usage, whole, prod, unschedulable, known)
    table = PoolTable(resources, capacity, usage, prod_usage, whole, prod, groups)
    return LoadPool(name, nodes, pods, said, known, table)


def _reported(node: SeenNode, said: NodeLoadRules, now: int) -> bool:
    metric = node.sight.metric
    return (
        metric is not None
        and metric.node_usage is not None
        and metric.updated_at is not None
        and now - metric.updated_at < said.stale_after
    )


def _used(node: SeenNode, resources: Sequence[str], rules: LoadRules) -> list[int]:
    metric = node.sight.metric
    total: dict[str, int] = {}
    if rules.by_requests:
        _sum_into(total, (pod.request for pod in node.pods))
    elif metric is not None:
        _sum_into(total, [metric.system_usage, *(one.usage for one in metric.pods)])
    total[PODS] = len(node.pods)
    return _row(total, resources)


def _used_by_prod(pods: Sequence[LoadedPod], resources: Sequence[str]) -> list[int]:
    total: dict[str, int] = {}
    prod = [pod for pod in pods if pod.prod]
    _sum_into(total, (pod.usage for pod in prod if pod.usage is not None))
    total[PODS] = len(prod)
    return _row(total, resources)


def _sum_into(total: dict[str, int], amounts: Iterable[Amounts]) -> None:
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + amount


def _capacity(node: SeenNode) -> Amounts:
    physical: Amounts = node.facts["resources.physical"]  # type: ignore[assignment]  # the fact's type says so
    return physical


def _row(amounts: Amounts, resources: Sequence[str]) -> list[int]:
    return [min(amounts.get(name, 0), _MOST) for name in resources]


def _counted(amounts: Amounts | None) -> Amounts | None:
    """What a pod takes, each amount as far as a table of nodes can add it up."""
    if amounts is None or all(amount <= _MOST for amount in amounts.values()):
        return amounts
    return {name: min(amount, _MOST) for name, amount in amounts.items()}


@dataclass(slots=True)
class _Balancing:
    """One round over one pool: a `Reliever` of its pods."""

    pool: LoadPool
    rules: StrategyRules
    load: LoadRules
    moves: Moves
    memory: LoadMemory
    interval: float
    _by_row: dict[int, SeenNode] = field(init=False)
    _before: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self._by_row = {node.row: node for node in self.pool.nodes}
        self._before = self.pool.table.usage.copy()

    def run(self) -> Work[PoolReport]:
        table, now = self.pool.table, self._seconds
        self._forget_normal()
        high, prod_high = table.of(LoadGroup.HIGH), table.of(LoadGroup.PROD_HIGH)
        if not high and not prod_high:
            return self._report(ReliefStop.NO_SOURCE)
        sources = [row for row in high if self._mark(self.memory.nodes, row)]
        prod_sources = [row for row in prod_high if self._mark(self.memory.prod, row)]
        if not sources and not prod_sources:
            return self._report(ReliefStop.NO_ANOMALY)
        if not table.of(LoadGroup.LOW, LoadGroup.PROD_LOW, LoadGroup.BOTH_LOW):
            return self._report(ReliefStop.NO_TARGET)
        for row in table.of(LoadGroup.LOW, LoadGroup.BOTH_LOW):
            self.memory.nodes.reset(self._name(row), now)
        for row in table.of(LoadGroup.PROD_LOW):
            self.memory.prod.reset(self._name(row), now)
        one_round = ReliefRound(
            table, ReliefRules(self.load.least_targets, self.load.fits_load, self._weights), self
        )
        stop = yield from one_round.run(sources, prod_sources)
        if one_round.budget is not None:  # pods were looked at
            for row in sources:
                self.memory.nodes.mark_normal(self._name(row), now)
            for row in prod_sources:
                self.memory.prod.mark_normal(self._name(row), now)
        return self._report(stop, one_round.budget)

    def _forget_normal(self) -> None:
        """Nodes that are not too full in this round count anew, where policy wants rounds that follow each other."""
        groups = self.pool.table.groups
        for row, said in enumerate(self.pool.said):
            if said.consecutive and self.pool.known[row]:
                if groups[row] != LoadGroup.HIGH:
                    self.memory.nodes.drop(self._name(row))
                if groups[row] not in (LoadGroup.HIGH, LoadGroup.PROD_HIGH):
                    self.memory.prod.drop(self._name(row))

    def _mark(self, detectors: Detectors, row: int) -> bool:
        if self.memory.impatient:
            return True
        condition = self.pool.said[row].anomaly
        if condition.forgotten_after < self.interval:
            # Else counts would be forgotten from round to round.
            condition = AnomalyCondition(
                condition.consecutive_abnormalities,
                condition.consecutive_normalities,
                condition.timeout,
                self.interval,
            )
        return detectors.mark_over(self._name(row), condition, self._seconds)

    @property
    def _seconds(self) -> float:
        return self.moves.now / NANOSECONDS

    def _name(self, row: int) -> str:
        return self.pool.nodes[row].name

    def _weights(self, row: int) -> Mapping[str, int]:
        said = self.pool.said[row]
        named = {**dict.fromkeys((*_BASIC, *said.low, *said.high), 1), **said.weights}
        return {name: weight if weight > 0 else 1 for name, weight in named.items()}

    def _report(self, stop: ReliefStop | None, budget: Mapping[str, int] | None = None) -> PoolReport:
        groups: dict[LoadGroup, list[str]] = defaultdict(list)
        for node, group in zip(self.pool.nodes, self.pool.table.groups.tolist(), strict=True):
            groups[LoadGroup(group)].append(node.name)
        return PoolReport(self.pool.name, dict(groups), stop, self.pool.table, self._before, budget)

    # --- what the round asks ----------------------------------------------------------------------

    def pods(self, row: int) -> Iterable[LoadedPod]:
        """See `Reliever`."""
        return self.pool.pods[row]

    def may_go(self, pod: LoadedPod) -> bool:
        """See `Reliever`."""
        seen, node = pod.seen, self._node_of(pod)
        return self.moves.why_not(seen, node) is None and self.rules.candidate(
            seen.facts, node.facts, self.moves.now
        )

    def room(self, pod: LoadedPod, targets: Sequence[int]) -> int | None:
        """See `Reliever`."""
        return next((row for row in targets if self.pool.nodes[row].takes(pod.seen)), None)

    def ordered(self, pods: Sequence[tuple[LoadedPod, float]]) -> Sequence[LoadedPod]:
        """See `Reliever`."""
        now = self.moves.now
        keyed = [
            (self.rules.key(pod.seen.facts, self._node_of(pod).facts, now, relief), pod)
            for pod, relief in pods
        ]
        keyed.sort(key=lambda one: one[0])
        return [pod for _, pod in keyed]

    def goes(self, pod: LoadedPod, row: int, target: int | None, *, prod: bool) -> bool:
        """See `Reliever`."""
        node = self.pool.nodes[row]
        there = self.moves.relocation(pod.seen, node, self.rules)
        if isinstance(there, Stays):
            return False
        fits = "" if target is None else self._name(target)
        self.moves.add(pod.seen, node, self.rules, self._reason(row, prod=prod), there or fits)
        return True

    def relieved(self, row: int, *, prod: bool) -> None:
        """See `Reliever`."""
        detectors = self.memory.prod if prod else self.memory.nodes
        detectors.reset(self._name(row), self._seconds)

    def _node_of(self, pod: LoadedPod) -> SeenNode:
        return self._by_row[pod.seen.row]

    def _reason(self, row: int, *, prod: bool) -> str:
        table, said = self.pool.table, self.pool.said[row]
        used = table.prod_usage if prod else table.usage
        thresholds = table.prod_thresholds if prod else table.thresholds

        def amounts(of: NDArray[np.int64]) -> dict[str, int]:
            return dict(zip(table.resources, of[row].tolist(), strict=True))

        shares = said.prod_high if prod else said.high
        whole = 0.0 if said.deviation else 100.0
        return overuse_reason(
            amounts(used),
            amounts(table.capacity),
            amounts(thresholds.high),
            {name: shares.get(name, whole) for name in table.resources},
            prod=prod,
        )
