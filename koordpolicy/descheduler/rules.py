"""What the kind Descheduling says, asked through programs made once a revision."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from koordpolicy.algorithms.descheduling.anomaly import AnomalyCondition
from koordpolicy.algorithms.descheduling.eviction_limiter import EvictionLimits
from koordpolicy.cluster.memoized import MemoizedDecision
from koordpolicy.cluster.prepared import PreparedDecision, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.sortable import SortKey, sort_key_of
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.movable_pod import PREFERENCE_ELSEWHERE
from koordpolicy.model.time import NANOSECONDS

KIND: Final = "Descheduling"
LOW_NODE_LOAD: Final = "LowNodeLoad"

_LAST: Final[SortKey] = ((1,),)
_FIRST: Final = (0,)
_SLOWEST: Final = 0.001
"""Evictions a second where policy says none at all: a round has to end some time."""


@dataclass(frozen=True, slots=True)
class Stays:
    """Why a pod stays: the condition that is not met, and its reason."""

    condition: str
    reason: str


class Asked:
    """The fields of one profile, or of one entry of its lists, by name."""

    def __init__(self, graph: RuleGraph, target: str) -> None:
        self._graph = graph
        self._target = target
        self._made: dict[str, PreparedDecision] = {}

    def value(self, field: str, roots: Mapping[str, Any]) -> Any:
        """A field's value. Raises CelError."""
        made = self._made.get(field)
        if made is None:
            made = self._made[field] = prepared(self._graph, f"{self._target}.{field}")
        return made.value(roots)

    def may_be(self, field: str, value: Any) -> bool:
        """Whether a field may have a value; so, too, where that depends on facts."""
        try:
            found: bool = self.fixed(field) == value
        except CelError:
            return True
        return found

    def fixed(self, field: str) -> Any:
        """The value of a field that reads no facts. Raises CelError."""
        return self.value(field, {})

    def facts(self, *fields: str) -> frozenset[tuple[str, str]]:
        """What these fields read."""
        return frozenset().union(
            *(prepared(self._graph, f"{self._target}.{field}").facts for field in fields)
        )

    def holds(self, field: str, roots: Mapping[str, Any]) -> bool:
        """Whether a field is true; not where that cannot be told."""
        try:
            return self.value(field, roots) is True
        except CelError:
            return False


class LoadRules:
    """When a node is too full, for one strategy by load."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.resources: tuple[str, ...] = tuple(asked.fixed("load.resources"))
        self.by_requests: bool = asked.fixed("load.measure") == "Requests"
        self.least_targets = int(asked.fixed("load.leastTargets"))
        self.fits_load = bool(asked.fixed("load.fitsLoad"))
        self._prod = MemoizedDecision(lambda roots: asked.holds("load.prod", roots), asked.facts("load.prod"))

    def of_node(self, node: Record, now: int) -> "NodeLoadRules":
        """What is said of one node. Raises CelError."""
        roots = {"node": node, "now": TIMES.timestamp(now)}

        def said(field: str) -> Any:
            return self._asked.value(f"load.{field}", roots)

        rounds = int(said("anomaly.rounds"))
        return NodeLoadRules(
            str(said("pool")),
            said("staleAfter").ns,
            dict(said("high")),
            dict(said("low")),
            dict(said("prodHigh")),
            dict(said("prodLow")),
            bool(said("deviation")),
            dict(said("weights")),
            AnomalyCondition(
                rounds,
                int(said("anomaly.relievedRounds")),
                said("anomaly.lasts").ns / NANOSECONDS,
                said("anomaly.forgottenAfter").ns / NANOSECONDS,
            ),
            said("anomaly.consecutive") is True,
        )

    def prod(self, pod: Record, now: int) -> bool:
        """Whether a pod is a prod pod."""
        return self._prod.value({"pod": pod, "now": TIMES.timestamp(now)}) is True


@dataclass(frozen=True, slots=True)
class NodeLoadRules:
    """The same for one node: its pool, thresholds in percent by resource, and when it counts as an anomaly, by rounds that follow each other (`consecutive`) or by any. Times of metrics are in
    nanoseconds.
    """

    pool: str
    stale_after: int
    high: Mapping[str, float]
    low: Mapping[str, float]
    prod_high: Mapping[str, float]
    prod_low: Mapping[str, float]
    deviation: bool
    weights: Mapping[str, int]
    anomaly: AnomalyCondition
    consecutive: bool


class StrategyRules:
    """One strategy of a profile. What cannot be told of a pod or node is so that nothing goes."""

    def __init__(self, graph: RuleGraph, target: str, name: str) -> None:
        self.name = name
        self._asked = asked = Asked(graph, f"{target}.strategies[{name}]")
        self.enabled = asked.fixed("enabled") is True
        self.plugin = str(asked.fixed("plugin") or "")
        self.dry_run = asked.fixed("dryRun") is True
        self.load = LoadRules(asked) if self.plugin == LOW_NODE_LOAD else None
        self.ended = asked.fixed("ended") is True
        self.total: int | None = asked.fixed("total")
        self.constraints: frozenset[str] = frozenset(asked.fixed("constraints") or ())
        self.weights: Mapping[str, float] = {
            name: float(weight) for name, weight in (asked.fixed("weights") or {}).items()
        }

    def looks_at(self, node: Record, now: int) -> bool:
        """Whether it looks at a node at all."""
        return self._asked.holds("nodes", _roots(node, now))

    @property
    def compares_nodes(self) -> bool:
        """Whether which pods may go depends on what they prefer of other nodes."""
        return not self._asked.facts("candidates").isdisjoint({("pod", PREFERENCE_ELSEWHERE), ("pod", "")})

    def releases(self, node: Record, now: int) -> bool:
        """Whether a node gives pods away."""
        return self._asked.holds("release", _roots(node, now))

    def candidate(self, pod: Record, node: Record, now: int) -> bool:
        """Whether a pod may go for this reason."""
        return self._asked.holds("candidates", _roots(node, now, pod))

    def fits(self, pod: Record, node: Record, now: int) -> bool:
        """Whether the pod stays where no other node has room for it; so, too, where that cannot be told."""
        try:
            return self._asked.value("fits", _roots(node, now, pod)) is not False
        except CelError:
            return True

    def node_key(self, node: Record, now: int) -> SortKey:
        """The place of a node among those that are asked to release pods."""
        try:
            keys = self._asked.value("nodeOrder", _roots(node, now))
        except CelError:
            return _LAST
        return (_FIRST, *sort_key_of(keys or ()))

    def most(self, node: Record, now: int) -> int | None:
        """How many pods a node gives away; None for any, none where that cannot be told."""
        try:
            found: int | None = self._asked.value("most", _roots(node, now))
        except CelError:
            return 0
        return found

    def whole(self, node: Record, now: int) -> bool:
        """Whether a node gives away all or none; so, too, where that cannot be told."""
        try:
            return self._asked.value("whole", _roots(node, now)) is True
        except CelError:
            return True

    def takes(self, pod: Record, node: Record, target: Record, now: int) -> bool:
        """Whether another node is meant to take a pod."""
        return self._asked.holds("takes", {**_roots(node, now, pod), "target": target})

    @property
    def may_ask_scheduler(self) -> bool:
        """Whether the scheduler is asked of any pod."""
        return self.enabled and self._asked.may_be("relocating.better", True)

    def better_by(self, pod: Record, node: Record, now: int) -> float | None:
        """By more than how much another node has to be better for a pod; None where the scheduler is not asked.

        Where that cannot be told, no node is good enough.
        """
        roots = _roots(node, now, pod)
        try:
            if self._asked.value("relocating.better", roots) is False:
                return None
            return float(self._asked.value("relocating.byMoreThan", roots) or 0.0)
        except CelError:
            return inf

    def key(self, pod: Record, node: Record, now: int, relief: float = -1.0) -> SortKey:
        """Its place among those that may go."""
        try:
            keys = self._asked.value("order", {**_roots(node, now, pod), "relief": relief})
        except CelError:
            return _LAST
        return (_FIRST, *sort_key_of(keys or ()))

    def reason(self, pod: Record, node: Record, now: int) -> str:
        """Why the pod goes; empty where nothing says it."""
        try:
            return str(self._asked.value("reason", _roots(node, now, pod)) or "")
        except CelError:
            return ""


class ProfileRules:
    """One profile. Raises CelError where what is said of all of it cannot be told."""

    def __init__(self, graph: RuleGraph, name: str) -> None:
        self.name = name
        self.digest = graph.digest
        target = f"{KIND}/{name}"
        self._asked = asked = Asked(graph, target)
        self.enabled = asked.fixed("enabled") is True
        self.dry_run = asked.fixed("dryRun") is True
        self.migrate = asked.fixed("migrate") is True
        self.interval = asked.fixed("interval").ns / NANOSECONDS
        self.least_nodes = int(asked.fixed("leastNodes"))
        self.limits = EvictionLimits(
            asked.fixed("limits.perNode"), asked.fixed("limits.perNamespace"), asked.fixed("limits.total")
        )
        self.per_second = max(float(asked.fixed("pace.perSecond")), _SLOWEST)
        self.burst = float(asked.fixed("pace.burst"))
        self.refused_for = asked.fixed("pace.refusedFor").ns / NANOSECONDS
        self.strategies = [
            StrategyRules(graph, target, one.name)
            for one in graph.items(KIND, name, "strategies")
            if len(one.fields) > 1  # of one that has but a name nothing is to be done
        ]
        self._conditions = [
            (one.name, asked_of)
            for one in graph.items(KIND, name, "conditions")
            if len(one.fields) > 1
            and (asked_of := Asked(graph, f"{target}.conditions[{one.name}]")).fixed("enabled") is True
        ]
        read = frozenset().union(*(one.facts("require", "reason") for _, one in self._conditions))
        # Most pods are like others in all that conditions read.
        self._first = MemoizedDecision(lambda roots: next(self._that_stays(roots), None), read)

    def looks_at(self, node: Record, now: int) -> bool:
        """Whether the profile looks at a node at all."""
        return self._asked.holds("nodes", _roots(node, now))

    def stays(self, pod: Record, node: Record, now: int) -> Stays | None:
        """Why a pod stays whatever strategy wants it to go; None where nothing forbids it."""
        found: Stays | None = self._first.value(_roots(node, now, pod))
        return found

    def all_that_stays(self, pod: Record, node: Record, now: int) -> Iterator[Stays]:
        """Each condition that is not met, in their order."""
        return self._that_stays(_roots(node, now, pod))

    def _that_stays(self, roots: Mapping[str, Any]) -> Iterator[Stays]:
        for name, asked in self._conditions:
            if not asked.holds("require", roots):
                try:
                    reason = str(asked.value("reason", roots) or "")
                except CelError:
                    reason = ""
                yield Stays(name, reason)


def _roots(node: Record, now: int, pod: Record | None = None) -> dict[str, Any]:
    roots: dict[str, Any] = {"node": node, "now": TIMES.timestamp(now)}
    if pod is not None:
        roots["pod"] = pod
    return roots
