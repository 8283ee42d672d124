"""On whom a difference falls: both graphs asked about every node and pod of a cluster."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.diff.asked import told
from koordpolicy.graph.diff.changes import Told
from koordpolicy.graph.failed import FailedEvaluations
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.types import Type, Unit

Roots = Mapping[str, Any]
"""Records by root."""

_MOST_SHIFTS = 5
_MOST_NAMES = 5


class ClusterFacts(Protocol):
    """A cluster as records for questions. Each graph has its own, since classes and bands are policy."""

    def nodes(self, graph: RuleGraph, target: str) -> Iterable[tuple[str, Roots]]:
        """Every node by name, as the component sees it that asks decisions of this target."""
        ...

    def zones(self, graph: RuleGraph, target: str) -> Iterable[tuple[str, Roots]]:
        """Every NUMA zone of every node."""
        ...

    def pods(self, graph: RuleGraph, target: str) -> Iterable[tuple[str, Roots]]:
        """Every pod with its namespace."""
        ...

    def containers(self, graph: RuleGraph, target: str) -> Iterable[tuple[str, Roots]]:
        """Every container with its pod."""
        ...

    def placements(self, graph: RuleGraph, target: str) -> Iterable[tuple[str, Roots]]:
        """Every pod that has a node, with that node."""
        ...


@dataclass(frozen=True, slots=True)
class Shift:
    """One thing that is answered for differently."""

    name: str
    old: Told
    new: Told


@dataclass(frozen=True, slots=True)
class Affected:
    """How one decision comes out on a cluster.

    `things` says what was asked about: nodes, zones, pods, containers, pods where they are, or the cluster. Of
    `total`, `changed` are answered differently. For amounts (no percentages) `old` and `new` are their sums over all, and `largest`
    the greatest changes; `kinds` counts equal changes, the commonest first, with some names each. `failing` counts
    those that one of the graphs has no answer for, and `why` is the commonest reason ("" where all have one).
    """

    decision: str
    things: str
    type: Type
    total: int
    changed: int
    failing: int
    old: float | None = None
    new: float | None = None
    largest: tuple[Shift, ...] = ()
    kinds: tuple[tuple[Shift, int, tuple[str, ...]], ...] = field(default=())
    why: str = ""

    @property
    def same(self) -> bool:
        """Whether all that was asked about is answered for, and by both graphs alike."""
        return not self.changed and not self.failing

    @property
    def untold(self) -> bool:
        """Whether no change was seen, but not everything could be asked about."""
        return not self.changed and bool(self.failing)


_THINGS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"zone"}), "zones"),
    (frozenset({"pod", "node"}), "placements"),
    (frozenset({"container"}), "containers"),
    (frozenset({"pod"}), "pods"),
    (frozenset({"namespaceObject"}), "pods"),
    (frozenset({"node"}), "nodes"),
)
"""What to ask about, by the roots that a decision reads; the first that is covered."""

_EVERYWHERE = frozenset({"now", "cluster", "operation"})
_WORDS = {"placements": "pods on their nodes"}


@dataclass(frozen=True, slots=True)
class Sides:
    """Both graphs, each with what failed in it."""

    old: RuleGraph
    new: RuleGraph
    failed_old: FailedEvaluations = field(default_factory=FailedEvaluations)
    failed_new: FailedEvaluations = field(default_factory=FailedEvaluations)


def affected(sides: Sides, facts: ClusterFacts, decisions: Iterable[str]) -> Iterator[Affected]:
    """Ask both graphs for each decision. Those about things a cluster at rest has not (victims) are left out."""
    old, new = sides.old, sides.new
    for name in decisions:
        reads = _reads(old, name) | _reads(new, name)
        things = _things(reads)
        if things is None:
            continue
        if things == "cluster":
            pairs: Iterable[tuple[str, Roots, Roots]] = [("", {}, {})]
        else:
            target = str((new if name in new else old).decision(name).key.target)
            first, second = (dict(getattr(facts, things)(graph, target)) for graph in (old, new))
            pairs = [(one, first[one], second[one]) for one in first if one in second]
        words = _WORDS.get(things, things)
        yield _counted(name, words, [_shift(sides, name, words, *pair) for pair in pairs])


def things_of(graph: RuleGraph, name: str) -> str | None:
    """Which things of `ClusterFacts` a decision is about, `cluster` where it is about no single one; None for neither."""
    return _things(_reads(graph, name))


def _reads(graph: RuleGraph, name: str) -> frozenset[str]:
    """The roots that a decision reads anything of."""
    if name not in graph:
        return frozenset()
    own = graph.decision(name).roots
    return frozenset(root for root, _ in facts_of(graph.expression(name)) if root in own)


def _things(reads: frozenset[str]) -> str | None:
    if reads <= _EVERYWHERE:
        return "cluster"
    if reads & {"victim", "nominated", "candidate", "oldPod"}:
        return None
    return next((things for needed, things in _THINGS if needed <= reads), None)


def _shift(sides: Sides, name: str, things: str, thing: str, before: Roots, after: Roots) -> Shift:
    return Shift(
        thing,
        _answer(sides, sides.old, sides.failed_old, name, things, thing, before),
        _answer(sides, sides.new, sides.failed_new, name, things, thing, after),
    )


def _answer(
    sides: Sides,
    graph: RuleGraph,
    failed: FailedEvaluations,
    name: str,
    things: str,
    thing: str,
    records: Roots,
) -> Told:
    """What a graph answers; what fails for another reason than want of a fact, which components look for, is counted."""
    failed.skip()
    asked = (sides.new if name in sides.new else sides.old).decision(name)
    answer, rule = told(graph, asked, records)
    failed.note(things, thing)
    if answer.error is not None and not answer.missing:
        failed.add("" if rule is None else place(rule.span), name, things, thing, answer.error)
    return answer


def _counted(name: str, things: str, shifts: list[Shift]) -> Affected:
    good = [one for one in shifts if one.old.error is None and one.new.error is None]
    changed = [one for one in shifts if not one.old.same(one.new)]
    reasons = Counter(
        next(told.error for told in (one.new, one.old) if told.error is not None)
        for one in shifts
        if one.new.error is not None or one.old.error is not None
    )
    amounts = [one for one in good if _is_amount(one.old.value) and _is_amount(one.new.value)]
    type = next((one.new.type for one in changed), shifts[0].new.type if shifts else Type("dyn"))
    # A sum of percentages means nothing.
    summed = type.unit is not Unit.PERCENT and bool(amounts) and len(amounts) == len(good) and len(shifts) > 1
    largest = sorted(
        (one for one in amounts if not one.old.same(one.new)),
        key=lambda one: (-abs(one.new.value - one.old.value), one.name),
    )
    return Affected(
        name,
        things,
        type,
        len(shifts),
        len(changed),
        len(shifts) - len(good),
        sum(one.old.value for one in amounts) if summed else None,
        sum(one.new.value for one in amounts) if summed else None,
        tuple(largest[:_MOST_SHIFTS]) if summed else (),
        _kinds(changed),
        min(reasons, key=lambda reason: (-reasons[reason], reason), default=""),
    )


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kinds(changed: list[Shift]) -> tuple[tuple[Shift, int, tuple[str, ...]], ...]:
    """Equal changes together."""
    names: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], Shift] = {}
    for one in changed:
        key = (repr((one.old.value, one.old.error)), repr((one.new.value, one.new.error)))
        names.setdefault(key, []).append(one.name)
        first.setdefault(key, one)
    counts = Counter({key: len(found) for key, found in names.items()})
    return tuple(
        (first[key], count, tuple(sorted(names[key])[:_MOST_NAMES]))
        for key, count in counts.most_common(_MOST_SHIFTS)
    )
