"""Evaluations that fail in a simulation: with the rules, and with the pods and nodes that they were about."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from koordpolicy.agent.strategies.suppression import KIND as SUPPRESS
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.failed import FailedEvaluations, FailedRule, failing_condition, failing_value
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.unheld import SEEN
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.overcommit import KIND as OVERCOMMIT
from koordpolicy.manager.controllers.overcommit import Calculation, roots_of
from koordpolicy.manager.webhooks.profiles import KIND as COLOCATION
from koordpolicy.manager.webhooks.rules import KIND as ADMISSION
from koordpolicy.manager.webhooks.rules import Violation
from koordpolicy.model.facts import Record
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.driver import Settled
from koordpolicy.scheduler.profile import KIND as PROFILE
from koordpolicy.scheduler.profile import place_of

T = TypeVar("T")

PODS: Final = "pods"
NODES: Final = "nodes"


class SimulatedFailures:
    """Counts them. Each method is told what was evaluated since the last call."""

    def __init__(self, graph: RuleGraph) -> None:
        self._graph = graph
        self._failed = FailedEvaluations()

    def found(self) -> tuple[FailedRule, ...]:
        """What failed, the most frequent first."""
        return self._failed.found()

    def admitted(
        self,
        pod: str,
        refusal: Exception | None,
        left_out: Sequence[tuple[str, str]],
        roots: Callable[[], Mapping[str, Any]],
    ) -> None:
        """A pod was admitted, or refused; `left_out` are profiles that could not be decided, each with its reason.

        `roots` are the records that webhooks asked about.
        """
        self._failed.note(PODS, pod)
        cause = refusal
        while cause is not None and not isinstance(cause, CelError):
            cause = cause.__cause__ if isinstance(cause.__cause__, Exception) else None
        if cause is not None:
            left_out = [*left_out, *((profile, str(cause)) for profile in self._graph.subjects(COLOCATION))]
        for profile, reason in left_out:
            self._value(f"{COLOCATION}/{profile}", reason, PODS, pod, [roots()])

    def broken(self, violations: Iterable[Violation], pod: str) -> None:
        """Admission rules are broken, or cannot be decided."""
        for one in violations:
            if one.problem:
                decision = f"{ADMISSION}/{one.rule}.require"
                error = one.problem.partition(": ")[2]
                self._failed.add(rule_place(self._graph, decision), decision, PODS, pod, error)

    def tried(self, settled: Settled, scheduler: Scheduler) -> None:
        """A scheduler has tried to place a pod."""
        name = "/".join(settled.decision.pod)
        target = f"{PROFILE}/{scheduler.profile.name}"

        def why(clause: str) -> str:
            return failing_condition(self._graph, target, clause, _beside(scheduler, settled))

        self._failed.note(PODS, name, why)
        failure = settled.decision.failure
        if failure is not None:
            self._failed.add(failure.place, f"{target} {failure.step}".rstrip(), PODS, name, failure.text)
        for refusals in settled.decision.refusals:
            if refusals.error:
                step = f"filter:{refusals.filter}"
                rule = place_of(self._graph, scheduler.profile.name, step)
                self._failed.add(rule, f"{target} {step}", PODS, name, refusals.error)
        for failed in settled.decision.failed_scores:
            step = f"score:{failed.score}"
            rule = place_of(self._graph, scheduler.profile.name, step)
            self._failed.add(rule, f"{target} {step}", PODS, name, failed.error)

    def at_once(self, ask: Callable[[], T]) -> T | None:
        """What is asked of all nodes at once; None where a condition fails there, which is then to be asked node by node."""
        before = SEEN.count
        found = ask()
        if SEEN.count == before:
            return found
        self._failed.skip()
        return None

    def looked_at(self, nodes: Iterable[str]) -> None:
        """Decisions about nodes were made of which none failed."""
        for node in nodes:
            self._failed.note(NODES, node)

    def offered(
        self, node: str, record: Record, calculations: Sequence[Calculation], cluster: Record, now: int
    ) -> None:
        """What a node offers was decided."""
        self._failed.note(NODES, node)
        for one in calculations:
            if one.failed:
                roots = roots_of(self._graph, one.resource, record, now, cluster)
                zones: Any = record.get("zones", ())
                situations = [roots, *({**roots, "zone": zone} for zone in zones)]
                self._value(f"{OVERCOMMIT}/{one.resource}", one.reason, NODES, node, situations)

    def suppressed(self, node: str, record: Record, reason: str, now: int) -> None:
        """How far best-effort work is held back was decided; `reason` says why there is no target, if there is none."""
        self._failed.note(NODES, node)
        if reason:
            roots = {"node": record, "now": TIMES.timestamp(now)}
            found = failing_value(self._graph, SUPPRESS, reason, [roots])
            if found is not None:
                self._failed.add(found[1], found[0], NODES, node, reason)

    def decided(self, kind: str, record: Record, reason: str, now: int) -> None:
        """An agent's strategy could not decide, for this reason."""
        node = str(record["name"])
        self._failed.note(NODES, node)
        self._value(kind, reason, NODES, node, [{"node": record, "now": TIMES.timestamp(now)}])

    def _value(
        self, target: str, reason: str, things: str, name: str, situations: Iterable[Mapping[str, Any]]
    ) -> None:
        found = failing_value(self._graph, target, reason, situations)
        if found is not None:
            self._failed.add(found[1], found[0], things, name, reason)


def rule_place(graph: RuleGraph, decision: str) -> str:
    """Where the first rule of a decision stands; empty where it has none."""
    return "".join(place(rule.span) for rule in graph.decision(decision).rules[:1])


def _beside(scheduler: Scheduler, settled: Settled) -> Iterator[Mapping[str, Any]]:
    """The records about a pod and each node in turn."""
    records = scheduler.framework.cycle(settled.pod).records
    table = scheduler.cache.table
    for node in scheduler.cache.nodes():
        yield {**records, "node": table.row(table.index(node.name))}
