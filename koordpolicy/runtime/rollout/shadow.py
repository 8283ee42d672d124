"""Both revisions on the same inputs: one acts, the other is asked beside it, and differences are counted.

The acting program pays a counter, and for the sampled share of calls a shallow copy of its records. Asking, comparing
and keeping happen later, in whichever thread drains; both revisions are asked there, on the same copy, so that they
see the same facts even where the component has changed its own since. What cannot be compared in time is dropped
and counted. Decisions that both revisions compute alike are not asked at all.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.row import RowProgram
from koordpolicy.runtime.policies.gating import DecisionComparison
from koordpolicy.runtime.rollout.counts import ComparisonCounts, ComparisonTally

WAITING: Final = 2048
"""Inputs that wait to be compared; more are dropped."""
_FACTS: Final = 50


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """A decision on which the revisions differ: their answers as texts, and the facts that either read."""

    decision: str
    active: str
    candidate: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: object
    error: str = ""

    def agrees(self, other: "_Outcome") -> bool:
        """Two failures agree, whatever their words."""
        if self.error or other.error:
            return bool(self.error) and bool(other.error)
        return _equal(self.value, other.value)

    def __str__(self) -> str:
        return f"error: {self.error}" if self.error else repr(self.value)


class Comparison:
    """Compares the changed `decisions` of two revisions.

    `sample` (percent points) and `keep` may be set at any time. `watched` gives either graph with programs that
    offer their inputs, `observe` both, from then on compared as they are given; `drain` compares what was offered.
    Offering is for one thread, draining for another.
    """

    def __init__(
        self,
        active: RuleGraph,
        candidate: RuleGraph,
        decisions: frozenset[str],
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.active = active
        self.candidate = candidate
        self.sample = 0.0
        self.dropped = 0
        self.counts = ComparisonCounts()
        self.differences: deque[AnswerDifference] = deque(maxlen=0)
        self._decisions = decisions
        self._clock = clock
        self._waiting: deque[tuple[str, tuple[str, ...], tuple[Any, ...]]] = deque()
        self._credit = 0.0

    def begin(self, sample: float, keep: int) -> None:
        """A step begins: count from nothing, ask for this share of decisions, keep so many differences."""
        self._waiting.clear()
        self.sample = sample
        self.counts = ComparisonCounts()
        self.differences = deque(maxlen=keep)

    def watched(self, graph: RuleGraph) -> RuleGraph:
        """The graph, equal in all its answers, whose programs offer their inputs."""
        return graph.watched(self._wrapped)

    def observe(self, active: RuleGraph, candidate: RuleGraph) -> tuple[RuleGraph, RuleGraph]:
        """Both graphs as they are from now on, watched: see `gating.Observe`."""
        self.active, self.candidate = active, candidate
        return self.watched(active), self.watched(candidate)

    def _wrapped(self, name: str, program: RowProgram) -> RowProgram:
        if name not in self._decisions:
            return program
        call = program.call
        roots = program.roots

        def asked(*given: Any) -> Any:
            self._offer(name, roots, given)
            return call(*given)

        return replace(program, call=asked)

    # --- decisions that are made of many: a `DecisionObserver` ------------------------------------

    def wants(self, decision: str) -> bool:
        """Whether anything behind a decision differs, and it is among the sampled share."""
        if not any(name.startswith(f"{decision}.") for name in self._decisions):
            return False
        return self._is_sampled()

    def note(self, comparison: DecisionComparison) -> None:
        """Count a decision that both have made."""
        one = comparison
        tally = ComparisonTally(1, 0 if one.agree else 1, 1 if one.failed else 0)
        kind = one.decision.partition("/")[0]
        self.counts = self.counts + ComparisonCounts({kind: tally}, one.active_time, one.candidate_time)
        if not one.agree and self.differences.maxlen:
            self.differences.append(
                AnswerDifference(one.decision, one.active, one.candidate, dict(one.facts))
            )

    def drop(self) -> None:
        """Count one that could not be made by both."""
        self.dropped += 1

    def _is_sampled(self) -> bool:
        self._credit += self.sample
        if self._credit < 100.0:
            return False
        self._credit -= 100.0
        return True

    # --- inputs on their way ----------------------------------------------------------------------

    def _offer(self, name: str, roots: tuple[str, ...], given: tuple[Any, ...]) -> None:
        if not self._is_sampled():
            return
        if len(self._waiting) >= WAITING:
            self.dropped += 1
            return
        copied = tuple(dict(record) if isinstance(record, dict) else record for record in given)
        self._waiting.append((name, roots, copied))

    @property
    def waits(self) -> bool:
        """Whether inputs wait to be compared."""
        return bool(self._waiting)

    def drain(self, most: int = WAITING) -> int:
        """Compare what waits, at most so many; gives how many."""
        done = 0
        while done < most:
            try:
                name, roots, given = self._waiting.popleft()
            except IndexError:
                break
            self._compare(name, dict(zip(roots, given, strict=True)))
            done += 1
        return done

    def _compare(self, name: str, records: Mapping[str, Any]) -> None:
        started = self._clock()
        active = _asked(self.active, name, records)
        between = self._clock()
        candidate = _asked(self.candidate, name, records)
        ended = self._clock()
        agree = active.agrees(candidate)
        failed = bool(candidate.error) and not active.error
        kind = name.partition(".")[0].partition("/")[0]
        tally = ComparisonTally(1, 0 if agree else 1, 1 if failed else 0)
        self.counts = self.counts + ComparisonCounts({kind: tally}, between - started, ended - between)
        if not agree and self.differences.maxlen:
            self.differences.append(
                AnswerDifference(name, str(active), str(candidate), self._facts(name, records))
            )

    def _facts(self, name: str, records: Mapping[str, Any]) -> dict[str, Any]:
        """The facts that either revision may read for this decision, as they were."""
        found: dict[str, Any] = {}
        for graph in (self.active, self.candidate):
            try:
                reads = graph.program(name).facts
            except UnknownDecision:
                continue
            for root, path in sorted(reads):
                record = records.get(root)
                if not path:
                    found[root] = record
                elif isinstance(record, Mapping) and path in record:
                    found[f"{root}.{path}"] = record[path]
        return dict(list(found.items())[:_FACTS])


def _asked(graph: RuleGraph, name: str, records: Mapping[str, Any]) -> _Outcome:
    try:
        return _Outcome(graph.value(name, **records))
    except CelError as error:
        return _Outcome(None, str(error))
    except UnknownDecision:
        return _Outcome(None)


def _equal(one: object, other: object) -> bool:
    """Equality of answers; floats that differ by rounding alone are equal, types that differ are not."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and one == other
