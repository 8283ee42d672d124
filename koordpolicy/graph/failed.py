"""Evaluations that failed while something ran over many nodes and pods: which rule, how often, on how many, of what first."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.language.cel.unheld import SEEN

CONDITION: Final = ""
"""What failed where it is no decision's value, but the condition in front of a rule, which then does not apply."""

_UNKNOWN: Final = "not known"


@dataclass(frozen=True, slots=True)
class FailedRule:
    """A rule at `place` (`FILE:LINE:COLUMN`) that failed: its condition, or the value of `decision`.

    `times` it failed, about `on` different ones of `total` `things` (pods, nodes, ...); `example` is the first of them, with
    its `error`.
    """

    place: str
    decision: str
    times: int
    things: str
    on: int
    total: int
    example: str
    error: str


@dataclass(slots=True)
class _Counted:
    example: str
    error: str
    times: int = 0
    names: set[str] = field(default_factory=set)


class FailedEvaluations:
    """Counts what fails from now on, each time that it is told whom the evaluations since the last time were about."""

    def __init__(self) -> None:
        self._known = SEEN.seen()
        self._count = SEEN.count
        self._asked: dict[str, set[str]] = {}
        self._found: dict[tuple[str, str, str], _Counted] = {}

    def note(self, things: str, name: str, why: Callable[[str], str] = lambda _: "") -> None:
        """All that was evaluated since the last time was about one of these things.

        `why` finds the error of a condition, by its place, where it was evaluated for many nodes at a time, which keeps none.
        """
        self._asked.setdefault(things, set()).add(name)
        if SEEN.count == self._count:
            return
        for clause, one in SEEN.since(self._known).items():
            found = self._counted(clause, CONDITION, things, name, one.error)
            found.times += one.count
            found.error = found.error or why(clause) or _UNKNOWN
        self._known, self._count = SEEN.seen(), SEEN.count

    def skip(self) -> None:
        """What was evaluated since the last time is not counted."""
        if SEEN.count != self._count:
            self._known, self._count = SEEN.seen(), SEEN.count

    def add(self, rule: str, decision: str, things: str, name: str, error: str) -> None:
        """The value of a decision failed, at the place of its rule."""
        self._counted(rule, decision, things, name, error).times += 1

    def _counted(self, rule: str, decision: str, things: str, name: str, error: str) -> _Counted:
        found = self._found.setdefault((rule, decision, things), _Counted(name, error))
        found.names.add(name)
        return found

    def found(self) -> tuple[FailedRule, ...]:
        """What failed, the most frequent first."""
        rules = [
            FailedRule(
                rule,
                decision,
                one.times,
                things,
                len(one.names),
                len(self._asked.get(things, set()) | one.names),
                one.example,
                one.error,
            )
            for (rule, decision, things), one in self._found.items()
        ]
        return tuple(sorted(rules, key=lambda one: (-one.times, one.place, one.decision, one.things)))


def failing_value(
    graph: RuleGraph, target: str, reason: str, situations: Iterable[Mapping[str, Any]]
) -> tuple[str, str] | None:
    """The decision of a target (`Overcommit/batch`) whose error a component told as its reason, and the place of its rule.

    `situations` are the records that it may have been asked about. None where no decision has that error.
    """
    names = [str(key) for key in graph.decisions if key.target == target]
    for roots in situations:
        for name in names:
            answer = graph.ask(name, **roots)
            if answer.error is not None and str(answer.error) in reason:
                rules = answer.provenance.rules[:1]
                return name, "".join(place(rule.span) for rule in rules)
    return None


def failing_condition(
    graph: RuleGraph, target: str, clause: str, situations: Iterable[Mapping[str, Any]]
) -> str:
    """The error of the condition at a place, among the decisions of a target; "" where it has none in these situations."""
    names = [str(key) for key in graph.decisions if key.target == target]
    for roots in situations:
        for name in names:
            before = SEEN.seen()
            graph.ask(name, **roots)
            found = SEEN.since(before).get(clause)
            if found is not None and found.error:
                return found.error
    return ""
