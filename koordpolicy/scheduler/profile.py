"""A scheduling profile of a rule graph, made ready: programs for what policy says in expressions,
implementations for what it leaves to plugins.

Expressions of all filters and scores become one column program, which computes what they have in common
once. The reasons of filters are a second one, asked only for nodes that were refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from koordpolicy.cluster.events import EVERY_EVENT, Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import PreparedDecision, prepared
from koordpolicy.cluster.state import ClusterState
from koordpolicy.graph import About, RuleGraph
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.columns import ColumnProgram, Fallback, compile_columns
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.model.facts import Record
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.reports.places import place_text
from koordpolicy.scheduler.plugins import PLUGINS, Plugin
from koordpolicy.scheduler.plugins.base import CacheKey
from koordpolicy.scheduler.sortkeys import sort_key
from koordpolicy.scheduler.step import Step

KIND: Final = "SchedulingProfile"
ROOTS: Final = ("node", "pod", "namespaceObject", "cluster", "now")

FIRST: Final = "First"
"""The way to break ties by name."""

SPEC: Final = "spec"
"""Stands, among the facts of pods, for what the spec says of nodes."""


class ProfileError(Exception):
    """The graph has no such profile, or names a plugin that this scheduler does not have."""


@dataclass(frozen=True, slots=True)
class Profile:
    """All of it. `evaluate` gives the outputs `filter:NAME` and `score:NAME`, `reasons` gives `NAME`.

    `node_facts` and `pod_facts` are what all of it reads; `fallback` is what no column program can say.
    `post_filters` are the plugins that are asked when no node takes a pod, in their order; `beyond` are the steps whose plugins look beyond nodes, with their places and cache_keys; `mixed` says
    that one of them has an expression too, so that the two cannot be brought up to date apart.
    """

    name: str
    digest: str
    filters: tuple[Step, ...]
    scores: tuple[Step, ...]
    evaluate: ColumnProgram | None
    reasons: Mapping[str, ColumnProgram]
    order: PreparedDecision
    backoff: tuple[PreparedDecision, PreparedDecision, PreparedDecision]
    idle: PreparedDecision
    ties: PreparedDecision
    sampling: PreparedDecision
    preferred_nodes: PreparedDecision
    confirming: PreparedDecision
    post_filters: tuple[Plugin, ...]
    node_facts: frozenset[str]
    pod_facts: frozenset[str]
    reads_now: bool
    reads_cluster: bool
    beyond: "tuple[tuple[str, Step, CacheKey], ...]" = ()
    mixed: bool = False
    fingerprint_facts: tuple[str, ...] = ()
    """`pod_facts` without the spec, which has no fact of its own; first what tells pods apart soonest."""
    programs: "Callable[[bool], ColumnProgram | None]" = lambda timed: None
    """The outputs `filter:NAME` alone; only of those that read the time, if so said. None where there are none."""
    kept: "dict[object, Any]" = field(default_factory=dict, init=False, repr=False, compare=False)
    """What others make of a profile once, by what it is."""
    _of_ordinary: "dict[int, tuple[tuple[str, Step, CacheKey], ...]]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _of_filters: "dict[bool, Profile]" = field(default_factory=dict, init=False, repr=False, compare=False)

    def of_filters(self, *, timed: bool) -> "Profile":
        """The same for whoever asks its filters alone: it computes what no score says; or only what time changes."""
        found = self._of_filters.get(timed)
        if found is None:
            found = self._of_filters[timed] = replace(self, evaluate=self.programs(timed))
        return found

    def beyond_nodes(self, view: PodView, state: ClusterState) -> "tuple[tuple[str, Step, CacheKey], ...]":
        """Those of `beyond` that may have something to say of a pod: of ordinary ones few, which are found once for all that may be there."""
        if not view.ordinary:
            return self.beyond
        present = state.present_for(view)
        found = self._of_ordinary.get(present)
        if found is None:
            found = self._of_ordinary[present] = tuple(
                one
                for one in self.beyond
                if one[1].plugin is None or one[1].plugin.may_concern_ordinary(present)
            )
        return found

    def keep(self, state: ClusterState, graph: RuleGraph) -> None:
        """Have the cluster's state keep what plugins read of it."""
        for step in self.filters:
            if step.plugin is not None and step.plugin.keeps is not None:
                step.plugin.keeps(state, graph)

    @property
    def looks_beyond_in_time(self) -> bool:
        """Whether a filter that looks beyond nodes reads the time."""
        return any(step.looks_beyond and step.reads_time for step in self.filters)

    @property
    def reads_time(self) -> bool:
        """Whether a filter's answer may change with nothing but the time."""
        return any(step.reads_time for step in self.filters)

    @property
    def fallback(self) -> tuple[Fallback, ...]:
        """The pieces of expressions that are evaluated node by node."""
        programs = [*([] if self.evaluate is None else [self.evaluate]), *self.reasons.values()]
        return tuple(piece for program in programs for piece in program.fallback)

    def sort_key(self, records: Mapping[str, Any]) -> tuple[Any, ...]:
        """The place of a pod in the queue; pods whose keys cannot be computed come last."""
        return sort_key(self.order, records)

    def confirm_within(self, records: Mapping[str, Any]) -> int:
        """How long a pod may be on its node without the cluster confirming it, nanoseconds; 0 for ever."""
        return _nanoseconds(self.confirming, records)

    def share_seen(self, records: Mapping[str, Any]) -> float | None:
        """The percentage of the nodes that are looked at for a pod; None for all of them."""
        try:
            share = self.sampling.value(records)
        except CelError:
            return None
        return share if isinstance(share, float) and share < 100 else None

    def most_preferred(self, records: Mapping[str, Any]) -> int:
        """How many of the nodes are tried that a pod's hint prefers; none where policy cannot say."""
        try:
            most = self.preferred_nodes.value(records)
        except CelError:
            return 0
        return most if isinstance(most, int) else 0

    def waits(self, records: Mapping[str, Any]) -> tuple[int, int, int]:
        """First and longest back-off, and when to try again anyway, in nanoseconds.

        Where policy cannot say for a pod, it is what the built-in pack says: nobody is to be tried without pause.
        """
        first, longest, again = (
            _nanoseconds(decision, records, otherwise)
            for decision, otherwise in zip(self.backoff, _WAITS, strict=True)
        )
        return first, longest, again

    def tries_when_idle(self, records: Mapping[str, Any]) -> bool:
        """Whether a pod that backs off may be tried early when no other waits to be tried."""
        try:
            return self.idle.value(records) is True
        except CelError:
            return False


_WAITS: Final = (NANOSECONDS, 10 * NANOSECONDS, 300 * NANOSECONDS)


def _nanoseconds(decision: PreparedDecision, records: Mapping[str, Any], otherwise: int = 0) -> int:
    try:
        value = decision.value(records)
    except CelError:
        return otherwise
    return value.ns if isinstance(value, Duration) else 0


def profile_of(graph: RuleGraph, name: str, plugins: Mapping[str, Plugin] = PLUGINS) -> Profile:
    """The profile of that scheduler name, by the plugins that there are. Raises ProfileError."""
    known = graph.subjects(KIND)
    if name not in known:
        there = ", ".join(f"`{one}`" for one in known) or "none"
        raise ProfileError(f"the policies have no scheduling profile `{name}`; there is {there}")
    about = graph.about(KIND, name)
    maker = _Maker(about, plugins)
    filters = tuple(maker.filter(item.name) for item in graph.items(KIND, name, "filters"))
    scores = tuple(maker.score(item.name) for item in graph.items(KIND, name, "scores"))
    queue = maker.prepared("queue.order")
    return Profile(
        name=name,
        digest=graph.digest,
        filters=filters,
        scores=scores,
        evaluate=maker.columns("", maker.evaluation) if maker.evaluation else None,
        reasons={step: maker.columns(step, {"": node}) for step, node in maker.reasons.items()},
        order=queue,
        backoff=(
            maker.prepared("queue.initialBackoff"),
            maker.prepared("queue.maximumBackoff"),
            maker.prepared("queue.retryAfter"),
        ),
        idle=maker.prepared("queue.tryWhenIdle"),
        ties=maker.prepared("ties"),
        sampling=maker.prepared("sampling"),
        preferred_nodes=maker.prepared("preferredNodes"),
        confirming=maker.prepared("queue.confirmWithin"),
        post_filters=_post_filters(about.value("preemption.plugin"), filters, plugins),
        node_facts=frozenset(maker.reads["node"]),
        pod_facts=frozenset(maker.reads["pod"]),
        reads_now=bool(maker.reads["now"]),
        reads_cluster=bool(maker.reads["cluster"]),
        beyond=(*_beyond("filter", filters), *_beyond("score", scores)),
        mixed=any(step.expression and step.looks_beyond for step in scores),
        fingerprint_facts=tuple(sorted(maker.reads["pod"] - {SPEC}, key=_telling)),
        programs=lambda timed: maker.of_filters(
            [one for one in filters if one.reads_time or not timed], timed=timed
        ),
    )


def _post_filters(
    named: object, filters: Sequence[Step], plugins: Mapping[str, Plugin]
) -> tuple[Plugin, ...]:
    """The plugins among the filters, and the one that preemption names, that have a post-filter: in the order of the table."""
    if named is not None and (str(named) not in plugins or plugins[str(named)].post_filter is None):
        raise ProfileError(f"there is no plugin `{named}` that makes room for pods")
    asked = [step.plugin for step in filters]
    return tuple(
        plugin
        for name, plugin in plugins.items()
        if plugin.post_filter is not None and (name == named or any(one is plugin for one in asked))
    )


def _telling(path: str) -> tuple[bool, str]:
    return not path.startswith("resources."), path


def _beyond(place: str, steps: Sequence[Step]) -> Iterator[tuple[str, Step, CacheKey]]:
    for step in steps:
        plugin = step.plugin
        if plugin is not None:
            ranks = place == "score" and plugin.rank is not None
            cache_key = plugin.rank_key if ranks else plugin.cache_key
            if cache_key is not None:
                yield step.place, step, cache_key


class _Maker:
    """Gathers what the steps of one profile need."""

    def __init__(self, about: About, plugins: Mapping[str, Plugin]) -> None:
        self._about = about
        self._graph = about.graph
        self._plugins = plugins
        self._target = about.target
        self.evaluation: dict[str, ir.Node] = {}
        self.reasons: dict[str, ir.Node] = {}
        self.reads: dict[str, set[str]] = {root: set() for root in ROOTS}

    def prepared(self, field: str) -> PreparedDecision:
        made = prepared(self._graph, f"{self._target}.{field}")
        self._note(made.facts)
        return made

    def columns(self, of: str, outputs: Mapping[str, ir.Node]) -> ColumnProgram:
        """The program of all steps (`of` is empty), or of the reason of one; a graph has it made once."""
        return self._graph.once(
            (self._target, "columns", of),
            lambda: compile_columns(outputs, "node", ROOTS, budget=self._graph.budget),
        )

    def of_filters(self, filters: Iterable[Step], *, timed: bool) -> ColumnProgram | None:
        """The program of some filters; None where they have no expressions."""
        outputs = {one.place: self.evaluation[one.place] for one in filters if one.expression}
        return self.columns(f" {'timed' if timed else 'filters'}", outputs) if outputs else None

    def filter(self, name: str) -> Step:
        at = f"filters[{name}]"
        plugin = self._plugin(at, name)
        if plugin is not None and plugin.filter is None and not plugin.decides_late:
            raise ProfileError(f"the filter `{name}`: its plugin does not filter")
        helped_by = frozenset() if plugin is None else plugin.helped_by
        reads = frozenset() if plugin is None else plugin.node_facts
        timed = False
        reason = self._expression(f"{at}.reason")
        if reason is not None:
            self.reasons[name] = reason
        require = self._expression(f"{at}.require")
        if require is not None:
            self.evaluation[f"filter:{name}"] = require
            helped_by |= _helping(require)
            reads |= {path for root, path in facts_of(require) if root == "node"}
            timed = any(root == "now" for root, _ in facts_of(require))
        return Step(
            name,
            self.prepared(f"{at}.enabled"),
            plugin,
            self._parameters(at),
            require is not None,
            reads,
            helped_by,
            tells_time=timed,
        )

    def score(self, name: str) -> Step:
        at = f"scores[{name}]"
        plugin = self._plugin(at, name)
        if plugin is not None and plugin.score is None and plugin.rank is None:
            raise ProfileError(f"the score `{name}`: its plugin does not score")
        value = self._expression(f"{at}.value")
        if value is not None:
            self.evaluation[f"score:{name}"] = value
        return Step(
            name,
            self.prepared(f"{at}.enabled"),
            plugin,
            self._parameters(at),
            value is not None,
            weight=self.prepared(f"{at}.weight"),
            normalize=str(self._about.value(f"{at}.normalize")),
        )

    def _expression(self, field: str) -> ir.Node | None:
        """A decision that some rule speaks of; None where only its default would answer."""
        if not self._about.says(field):
            return None
        found = self._graph.expression(f"{self._target}.{field}")
        self._note(facts_of(found))
        return found

    def _plugin(self, at: str, name: str) -> Plugin | None:
        named = self._about.value(f"{at}.plugin")
        if named is None:
            return None
        found = self._plugins.get(str(named))
        if found is None:
            raise ProfileError(f"`{name}`: there is no plugin `{named}`")
        self.reads["node"] |= found.node_facts
        self.reads["pod"] |= found.pod_facts
        return found

    def _parameters(self, at: str) -> tuple[tuple[str, PreparedDecision], ...]:
        head = f"{at}.parameters."
        names = sorted(
            key.field.removeprefix(head)
            for key in self._graph.decisions
            if key.target == self._target and key.field.startswith(head)
        )
        return tuple((name, self.prepared(head + name)) for name in names)

    def _note(self, facts: frozenset[tuple[str, str]]) -> None:
        for root, path in facts:
            if root in self.reads:
                self.reads[root].add(path)


_MEASURED: Final = ("usage.", "metric.", "load.", "resources.usage")
_LOADS: Final = frozenset(
    {"resources.load", "resources.prodLoad", "resources.filterLoad", "resources.scoreLoad"}
)
_DEMAND: Final = (
    "ownedCPU",
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
        if root == "cluster":
            return EVERY_EVENT
        if root != "node":
            continue
        load = path in _LOADS or path.startswith("load.")
        if load or path.startswith(_MEASURED):
            found.add(Event.METRIC_CHANGED)
        if load or path == "pods" or path.startswith(_DEMAND):
            found.add(Event.POD_GONE)
        found.add(Event.NODE_CHANGED)
    return frozenset(found)


def place_of(graph: RuleGraph, profile: str, step: str) -> str:
    """Where policy speaks of a step (`filter:NAME`), as `FILE:LINE:COLUMN`; empty where it does not."""
    return graph.once((KIND, profile, "place", step), lambda: _place_of(graph, profile, step))


def _place_of(graph: RuleGraph, profile: str, step: str) -> str:
    kind, _, name = step.partition(":")
    target, head = f"{KIND}/{profile}", f"{kind}s[{name}]."
    rules = [
        (key.field.removeprefix(head) not in _SAYING, rule)
        for key, decision in graph.decisions.items()
        if name and key.target == target and key.field.startswith(head)
        for rule in decision.rules[:1]
    ]
    if not rules:
        return ""
    rule = min(rules, key=lambda one: one[0])[1]
    return place_text(rule.layer, rule.span)


_SAYING: Final = ("require", "value")
"""The fields of a step with its expression."""


def records_for(pod: Record, namespace: Record, cluster: Record, now: int) -> dict[str, Any]:
    """The roots that every decision on a pod may read, the node excepted.

    `now` is the beginning of the second, so that equal pods have equal answers while it lasts.
    """
    second = Timestamp(now - now % NANOSECONDS)
    return {"pod": pod, "namespaceObject": namespace, "cluster": cluster, "now": second}
