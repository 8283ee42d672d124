"""A scheduling profile of a rule graph, made ready: programs for what policy says in expressions,
implementations for what it leaves to mechanisms.

Expressions of all filters and scores become one column program, which computes what they have in common
once. The reasons of filters are a second one, asked only for nodes that were refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.columns import ColumnProgram, Fallback, compile_columns
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.model.facts import Record
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.asked import Asked, asked
from koordpolicy.scheduler.events import EVERY_EVENT, Event
from koordpolicy.scheduler.mechanisms import MECHANISMS, Mechanism

KIND: Final = "SchedulingProfile"
ROOTS: Final = ("node", "pod", "namespaceObject", "cluster", "now")

FIRST: Final = "First"
"""The way to break ties by name."""


class ProfileError(Exception):
    """The graph has no such profile, or names a mechanism that this scheduler does not have."""


@dataclass(frozen=True, slots=True)
class Step:
    """A filter or a score of the profile.

    `expression` says whether policy gives one, beside or instead of the mechanism.
    """

    name: str
    enabled: Asked
    mechanism: Mechanism | None
    parameters: tuple[tuple[str, Asked], ...]
    expression: bool
    helped_by: frozenset[Event] = EVERY_EVENT
    weight: Asked | None = None
    normalize: str = "None"


@dataclass(frozen=True, slots=True)
class Profile:
    """All of it. `judge` gives the outputs `filter:NAME` and `score:NAME`, `reasons` gives `NAME`.

    `node_facts` and `pod_facts` are what all of it reads; `fallback` is what no column program can say.
    """

    name: str
    digest: str
    filters: tuple[Step, ...]
    scores: tuple[Step, ...]
    judge: ColumnProgram | None
    reasons: Mapping[str, ColumnProgram]
    order: Asked
    backoff: tuple[Asked, Asked, Asked]
    ties: Asked
    sampling: Asked
    node_facts: frozenset[str]
    pod_facts: frozenset[str]
    reads_now: bool
    reads_cluster: bool

    @property
    def fallback(self) -> tuple[Fallback, ...]:
        """The pieces of expressions that are evaluated node by node."""
        programs = [*([] if self.judge is None else [self.judge]), *self.reasons.values()]
        return tuple(piece for program in programs for piece in program.fallback)

    def sort_key(self, records: Mapping[str, Any]) -> tuple[Any, ...]:
        """The place of a pod in the queue; pods whose keys cannot be computed come last."""
        try:
            keys = self.order.value(records)
        except CelError:
            return ((1,),)
        return ((0,), *(_sortable(key) for key in keys or ()))

    def waits(self, records: Mapping[str, Any]) -> tuple[int, int, int]:
        """First and longest back-off, and when to try again anyway, in nanoseconds."""
        first, longest, again = (_nanoseconds(asked, records) for asked in self.backoff)
        return first, longest, again


def _nanoseconds(asked: Asked, records: Mapping[str, Any]) -> int:
    try:
        value = asked.value(records)
    except CelError:
        return 0
    return value.ns if isinstance(value, Duration) else 0


def _sortable(value: Any) -> tuple[str, Any]:
    """A key that compares with any other: first by its class, then by its value."""
    if isinstance(value, Timestamp | Duration):
        return type(value).__name__, value.ns
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        return "number", value
    return type(value).__name__, value if isinstance(value, str) else str(value)


def profile_of(graph: RuleGraph, name: str) -> Profile:
    """The profile of that scheduler name. Raises ProfileError."""
    known = graph.subjects(KIND)
    if name not in known:
        there = ", ".join(f"`{one}`" for one in known) or "none"
        raise ProfileError(f"the policies have no scheduling profile `{name}`; there is {there}")
    maker = _Maker(graph, f"{KIND}/{name}")
    filters = tuple(maker.filter(item.name) for item in graph.items(KIND, name, "filters"))
    scores = tuple(maker.score(item.name) for item in graph.items(KIND, name, "scores"))
    queue = maker.asked("queue.order")
    return Profile(
        name=name,
        digest=graph.digest,
        filters=filters,
        scores=scores,
        judge=_columns(maker.judged) if maker.judged else None,
        reasons={step: _columns({"": node}) for step, node in maker.reasons.items()},
        order=queue,
        backoff=(
            maker.asked("queue.initialBackoff"),
            maker.asked("queue.maximumBackoff"),
            maker.asked("queue.retryAfter"),
        ),
        ties=maker.asked("ties"),
        sampling=maker.asked("sampling"),
        node_facts=frozenset(maker.reads["node"]),
        pod_facts=frozenset(maker.reads["pod"]),
        reads_now=bool(maker.reads["now"]),
        reads_cluster=bool(maker.reads["cluster"]),
    )


def _columns(outputs: Mapping[str, ir.Node]) -> ColumnProgram:
    return compile_columns(outputs, "node", ROOTS)


class _Maker:
    """Gathers what the steps of one profile need."""

    def __init__(self, graph: RuleGraph, target: str) -> None:
        self._graph = graph
        self._target = target
        self.judged: dict[str, ir.Node] = {}
        self.reasons: dict[str, ir.Node] = {}
        self.reads: dict[str, set[str]] = {root: set() for root in ROOTS}

    def asked(self, field: str) -> Asked:
        made = asked(self._graph, f"{self._target}.{field}")
        self._note(made.facts)
        return made

    def filter(self, name: str) -> Step:
        at = f"filters[{name}]"
        mechanism = self._mechanism(at, name)
        if mechanism is not None and mechanism.filter is None:
            raise ProfileError(f"the filter `{name}`: its mechanism does not filter")
        helped_by = frozenset() if mechanism is None else mechanism.helped_by
        require = self._expression(f"{at}.require")
        if require is not None:
            self.judged[f"filter:{name}"] = require
            reason = self._expression(f"{at}.reason")
            if reason is not None:
                self.reasons[name] = reason
            helped_by |= _helping(require)
        return Step(
            name,
            self.asked(f"{at}.enabled"),
            mechanism,
            self._parameters(at),
            require is not None,
            helped_by,
        )

    def score(self, name: str) -> Step:
        at = f"scores[{name}]"
        mechanism = self._mechanism(at, name)
        if mechanism is not None and mechanism.score is None:
            raise ProfileError(f"the score `{name}`: its mechanism does not score")
        value = self._expression(f"{at}.value")
        if value is not None:
            self.judged[f"score:{name}"] = value
        return Step(
            name,
            self.asked(f"{at}.enabled"),
            mechanism,
            self._parameters(at),
            value is not None,
            weight=self.asked(f"{at}.weight"),
            normalize=str(self._graph.value(f"{self._target}.{at}.normalize")),
        )

    def _expression(self, field: str) -> ir.Node | None:
        """A decision that some rule speaks of; None where only its default would answer."""
        name = f"{self._target}.{field}"
        if name not in self._graph:
            return None
        found = self._graph.expression(name)
        self._note(facts_of(found))
        return found

    def _mechanism(self, at: str, name: str) -> Mechanism | None:
        named = self._graph.value(f"{self._target}.{at}.mechanism")
        if named is None:
            return None
        found = MECHANISMS.get(str(named))
        if found is None:
            raise ProfileError(f"`{name}`: there is no mechanism `{named}`")
        self.reads["node"] |= found.node_facts
        self.reads["pod"] |= found.pod_facts
        return found

    def _parameters(self, at: str) -> tuple[tuple[str, Asked], ...]:
        head = f"{at}.parameters."
        names = sorted(
            key.field.removeprefix(head)
            for key in self._graph.decisions
            if key.target == self._target and key.field.startswith(head)
        )
        return tuple((name, self.asked(head + name)) for name in names)

    def _note(self, facts: frozenset[tuple[str, str]]) -> None:
        for root, path in facts:
            if root in self.reads:
                self.reads[root].add(path)


_MEASURED: Final = ("usage.", "metric.", "load.", "resources.usage")
_LOADS: Final = frozenset(
    {"resources.load", "resources.prodLoad", "resources.filterLoad", "resources.scoreLoad"}
)
_DEMAND: Final = (
    "requested.",
    "nonzeroRequested.",
    "free.",
    "resources.requested",
    "resources.nonzeroRequested",
)


def _helping(require: ir.Node) -> frozenset[Event]:
    """The events after which an expression about a node can have another answer."""
    found = {Event.NODE_ADDED}
    for root, path in facts_of(require):
        if root != "node":
            continue
        load = path in _LOADS or path.startswith("load.")
        if load or path.startswith(_MEASURED):
            found.add(Event.METRIC_CHANGED)
        if load or path == "pods" or path.startswith(_DEMAND):
            found.add(Event.POD_GONE)
        found.add(Event.NODE_CHANGED)
    return frozenset(found)


def records_for(pod: Record, namespace: Record, cluster: Record, now: int) -> dict[str, Any]:
    """The roots that every decision on a pod may read, the node excepted.

    `now` is the beginning of the second, so that equal pods have equal answers while it lasts.
    """
    second = Timestamp(now - now % NANOSECONDS)
    return {"pod": pod, "namespaceObject": namespace, "cluster": cluster, "now": second}
