"""One round of a profile: all its strategies on one snapshot, and what came of it."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.descheduling.overuse import LoadGroup
from koordpolicy.algorithms.descheduling.relief_round import ReliefStop
from koordpolicy.algorithms.work import Work
from koordpolicy.cluster.relocation import Relocations
from koordpolicy.descheduler.by_peers import PEER_PLUGINS, release_peers
from koordpolicy.descheduler.by_rules import release
from koordpolicy.descheduler.low_node_load import LoadMemory, PoolReport, balance
from koordpolicy.descheduler.moves import Allowed, Move, Moves
from koordpolicy.descheduler.preferences import note_preferences
from koordpolicy.descheduler.rules import ProfileRules, Stays
from koordpolicy.descheduler.snapshot import ClusterSnapshot, SeenNode
from koordpolicy.model.pod import PodKey

LOG: Final = logging.getLogger(__name__)

_SHOWN: Final = 5
"""Reasons that are told of why pods stay, the most frequent first."""


_UNASKED: Final = "no strategy is switched on"


@dataclass(frozen=True, slots=True)
class RoundReport:
    """What a round found. `pools` are by strategy; `idle` says why nothing was looked at, empty where something was."""

    profile: str
    nodes: int
    pods: int
    moves: Sequence[Move] = ()
    pools: Mapping[str, Sequence[PoolReport]] = field(default_factory=dict)
    idle: str = ""
    kept: Mapping[PodKey, Stays] = field(default_factory=dict)
    """The pods that strategies would have go, and that would end no better, with what the scheduler says of each."""
    barred: Mapping[PodKey, Stays] = field(default_factory=dict)
    """The pods among `moves` that get no migration, with why, where somebody looked."""
    failed: Sequence[str] = ()
    """The strategies that could not be asked to the end, for a defect of ours; the others were."""
    asked: int = 0
    """How many strategies are switched on."""


@dataclass(slots=True)
class Memories:
    """What strategies remember from round to round, by profile and strategy.

    `impatient`: nodes count as too full for long enough at once.
    """

    impatient: bool = False
    _made: dict[tuple[str, str], LoadMemory] = field(default_factory=dict)

    def of(self, profile: str, strategy: str) -> LoadMemory:
        """The memory of one strategy."""
        return self._made.setdefault((profile, strategy), LoadMemory(impatient=self.impatient))


def run_round(
    rules: ProfileRules,
    snapshot: ClusterSnapshot,
    catalogue: Catalogue,
    memories: Memories,
    allowed: Allowed,
    relocations: Relocations | None = None,
) -> Work[RoundReport]:
    """Ask all strategies of a profile, one after the other; and `relocations`, whether pods would end better elsewhere."""
    now = snapshot.now
    nodes = []
    for node in snapshot.nodes:
        yield
        if rules.looks_at(node.facts, now):
            nodes.append(node)
    pods = sum(len(node.pods) for node in nodes)
    if not rules.enabled:
        return RoundReport(rules.name, len(nodes), pods, idle="the profile is switched off")
    if len(nodes) < rules.least_nodes:
        idle = f"{len(nodes)} of the nodes are ready, and {rules.least_nodes} are needed for anything to move"
        return RoundReport(rules.name, len(nodes), pods, idle=idle)
    moves = Moves(rules, now, allowed, relocations)
    failed: list[str] = []
    if relocations is None:
        pools = yield from _ask_strategies(rules, nodes, moves, catalogue, memories, failed)
    else:
        relocations.begin()
        try:
            pools = yield from _ask_strategies(rules, nodes, moves, catalogue, memories, failed)
        finally:
            relocations.end()
    asked = sum(strategy.enabled for strategy in rules.strategies)
    return RoundReport(
        rules.name, len(nodes), pods, moves.found, pools, kept=moves.kept, failed=failed, asked=asked
    )


def _ask_strategies(
    rules: ProfileRules,
    nodes: Sequence[SeenNode],
    moves: Moves,
    catalogue: Catalogue,
    memories: Memories,
    failed: list[str],
) -> Work[dict[str, Sequence[PoolReport]]]:
    pools: dict[str, Sequence[PoolReport]] = {}
    for strategy in rules.strategies:
        if not strategy.enabled:
            continue
        try:
            looked_at = [node for node in nodes if strategy.looks_at(node.facts, moves.now)]
            if strategy.compares_nodes:
                yield from note_preferences(looked_at)
            if strategy.plugin in PEER_PLUGINS:
                yield from release_peers(looked_at, strategy, moves, catalogue)
            elif strategy.load is None:
                yield from release(looked_at, strategy, moves, catalogue)
            elif looked_at:
                memory = memories.of(rules.name, strategy.name)
                pools[strategy.name] = yield from balance(looked_at, strategy, moves, memory, rules.interval)
        except Exception:
            # Whatever some object brought about: the other strategies are asked all the same.
            LOG.exception(
                "strategy %s of %s failed: internal error, please report", strategy.name, rules.name
            )
            failed.append(strategy.name)
    return pools


def report_text(report: RoundReport) -> Iterator[str]:
    """The report for people, line by line."""
    yield f"profile {report.profile}: {report.nodes} nodes, {report.pods} pods"
    if report.idle:
        yield f"  nothing was looked at: {report.idle}"
    for strategy, pools in report.pools.items():
        for pool in pools:
            yield f"  {_asked_of(strategy, pool)}: {_groups(pool)}"
            if pool.stop is not None:
                yield f"    nothing moves: {STOPPED[pool.stop]}"
            for name, shares in _gains(pool).items():
                yield f"    {name}: {', '.join(f'{key} {one:.0f} % → {other:.0f} %' for key, (one, other) in shares.items())}"
    for move in report.moves:
        to = f" → {move.target}" if move.target else ""
        dry = " (dry run)" if move.dry else ""
        yield f"  {'/'.join(move.pod.key)}: {move.node}{to} by {move.strategy}{dry}: {move.reason}"
    for why, count in Counter(stays.reason.partition(":")[0] for stays in report.kept.values()).most_common(
        _SHOWN
    ):
        yield f"  {count} stay: {why}"
    for strategy in report.failed:
        yield f"  {strategy} failed: an internal error, which the log shows; please report it"
    for stays in dict.fromkeys(report.barred.values()):
        pods = [key for key, one in report.barred.items() if one == stays]
        yield f"  no migration of {_pods(len(pods))}: {stays.reason} ({stays.condition}), such as {'/'.join(pods[0])}"
    left = sum(move.pod.key in report.barred for move in report.moves)
    stay = f", {left} of which stay: there is no migration of theirs" if left else ""
    unasked = "" if report.asked or report.idle else f": {_UNASKED}"
    yield f"  {_pods(len(report.moves))} to move{stay}{unasked}"


def _asked_of(strategy: str, pool: PoolReport) -> str:
    """A strategy, and the pool that it was asked of where pools have names."""
    return f"{strategy}, pool {pool.pool}" if pool.pool else strategy


def why_nothing_moves(report: RoundReport) -> str:
    """Why a round moves nobody, as far as it knows; empty where somebody moves."""
    if report.moves:
        return ""
    if report.idle or not report.asked:
        return report.idle or _UNASKED
    stopped = [
        f"{_asked_of(strategy, pool)}: {STOPPED[pool.stop]}"
        for strategy, pools in report.pools.items()
        for pool in pools
        if pool.stop is not None
    ]
    return "; ".join(stopped) or "no strategy asks for a pod to go"


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number:,} pods"


def report_data(report: RoundReport) -> dict[str, Any]:
    """The report for programs."""
    return {
        "profile": report.profile,
        "nodes": report.nodes,
        "pods": report.pods,
        "idle": report.idle,
        "strategies": [
            {
                "strategy": strategy,
                "pool": pool.pool,
                "groups": {group.name.lower(): list(names) for group, names in pool.groups.items()},
                "stop": None if pool.stop is None else str(pool.stop),
                "relieved": {
                    name: {key: {"before": one, "after": other} for key, (one, other) in shares.items()}
                    for name, shares in _gains(pool).items()
                },
            }
            for strategy, pools in report.pools.items()
            for pool in pools
        ],
        "failed": list(report.failed),
        "moves": [
            {
                "pod": "/".join(move.pod.key),
                "from": move.node,
                "to": move.target,
                "strategy": move.strategy,
                "reason": move.reason,
                "dryRun": move.dry,
                "noMigration": str(barred.reason) if (barred := report.barred.get(move.pod.key)) else None,
            }
            for move in report.moves
        ],
        "stay": [
            {"pod": "/".join(key), "condition": stays.condition, "reason": stays.reason}
            for key, stays in report.kept.items()
        ],
    }


STOPPED: Final = {
    ReliefStop.NO_SOURCE: "no node is above its high thresholds",
    ReliefStop.NO_ANOMALY: "no node has been above its high thresholds for long enough",
    ReliefStop.NO_TARGET: "no node is below its low thresholds, to take pods",
    ReliefStop.FEW_TARGETS: "too few nodes are below their low thresholds, by `leastTargets`",
    ReliefStop.ALL_LOW: "all nodes are below their low thresholds",
    ReliefStop.NOTHING_EVICTABLE: "no pod of the nodes that are too full may go, or has room elsewhere",
}
"""Why nothing moves in a pool, in words."""


def _groups(pool: PoolReport) -> str:
    """How many nodes are what, by the words of policy."""
    counts = Counter[str]()
    for group, word in pool.words.items():
        counts[word] += len(pool.groups.get(group, ()))
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _gains(pool: PoolReport) -> dict[str, dict[str, tuple[float, float]]]:
    """The use of nodes that pods leave before and after, in percent by resource."""
    table, before = pool.table, pool.before
    names = {
        row: name
        for group in (LoadGroup.HIGH, LoadGroup.PROD_HIGH)
        for row, name in zip(table.of(group), pool.groups.get(group, ()), strict=True)
    }
    return {
        name: {
            key: (100 * float(before[row, at]) / of, 100 * float(table.usage[row, at]) / of)
            for at, key in enumerate(table.resources)
            if (of := float(table.capacity[row, at])) > 0
        }
        for row, name in names.items()
        if (before[row] != table.usage[row]).any()
    }
