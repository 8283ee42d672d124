"""Tests that fail for something that the compiler warns of: one finding for both, at the cause, which is an error then.

`check` tells of a slip where it stands, with what mends it; that a test notices it, too, is a note there.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from koordpolicy.diagnostics import Diagnostic, Diagnostics, Note, Severity, Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.compiler import Compilation
from koordpolicy.graph.graph import RuleGraph, UnknownDecision
from koordpolicy.graph.rules import Decision
from koordpolicy.graph.state import Unit
from koordpolicy.graph.testing.results import Outcome, Results
from koordpolicy.language.cel.errors import CelError, MissingFact, NoSuchKey, Overflow
from koordpolicy.language.kinds.bundle import PolicyTestSpec

_SCORES: Final = (0, 100)
_MOST_NOTES: Final = 3
_QUOTED: Final = re.compile(r"`([^`]+)`|'([^']+)'")

_Told = tuple[str, Span]
"""Code and place of a finding of tests."""


def with_causes(compilation: Compilation, run: Results) -> Diagnostics:
    """The findings of both: a warning that explains why tests fail is an error, and stands for what they say."""
    causes: dict[Diagnostic, list[Note]] = defaultdict(list)
    explained: set[_Told] = set()
    warnings = [one for one in compilation.found if one.severity is Severity.WARNING]
    if warnings and compilation.graph is not None and run.found.has_errors:
        failed = {(one.code, one.span) for one in run.found}
        for cause, told, note in _links(_Causes(compilation, compilation.graph, warnings), compilation, run):
            if told in failed:
                causes[cause].append(note)
                explained.add(told)
    found = Diagnostics()
    for one in compilation.found:
        found.append(_as_error(one, causes[one]) if one in causes else one)
    for one in run.found:
        if (one.code, one.span) not in explained:
            found.append(one)
    return found


def _as_error(one: Diagnostic, notes: list[Note]) -> Diagnostic:
    more = len(notes) - _MOST_NOTES
    beyond = (Note(f"and {more} more"),) if more > 0 else ()
    return replace(one, severity=Severity.ERROR, notes=(*one.notes, *notes[:_MOST_NOTES], *beyond))


def _links(
    causes: "_Causes", compilation: Compilation, run: Results
) -> Iterator[tuple[Diagnostic, _Told, Note]]:
    """Each failure that a warning explains, with the warning and what is said there of it."""
    for case in run.cases:
        for outcome in case.outcomes:
            cause = None if outcome.passed else causes.of(outcome)
            if cause is not None:
                span = outcome.expectation.span
                yield cause, ("KP501", span), Note(f"so that the case `{case.name}` fails", span)
    for unit in compilation.units:
        for at, written in enumerate(unit.spec.cases if isinstance(unit.spec, PolicyTestSpec) else ()):
            for name in written.expect:
                cause = causes.of_missing(name)
                if cause is not None:
                    span = unit.document.positions.key(("spec", "cases", at, "expect", name))
                    yield cause, ("KP502", span), Note(f"so that there is no `{name}`", span)


class _Causes:
    """Finds the warning behind a failure."""

    def __init__(self, compilation: Compilation, graph: RuleGraph, warnings: list[Diagnostic]) -> None:
        self._graph = graph
        self._warnings = warnings
        self._units: Mapping[str, list[Unit]] = defaultdict(list)
        for unit in compilation.units:
            self._units[unit.id].append(unit)

    def of(self, outcome: Outcome) -> Diagnostic | None:
        """The warning of what made an answer another one than a test expects."""
        decision = self._graph.decision(outcome.expectation.decision)
        error, value = outcome.answer.error, outcome.answer.value
        if error is not None:
            return self._foreseen(decision, error)
        if isinstance(value, int | float) and not _SCORES[0] <= value <= _SCORES[1]:
            spans = [rule.span for rule in outcome.answer.provenance.rules[:1]]
            scored = self._within(("KP409",), spans)
            if scored:
                return scored[0]
        return self._misnamed(decision.key.kind, decision.key.target, decision.key.field)

    def of_missing(self, name: str) -> Diagnostic | None:
        """The warning of a document that was meant to say what a decision is which there is none of."""
        try:
            self._graph.decision(name)
        except UnknownDecision:
            target, _, field = name.partition(".")
            return self._misnamed(target.partition("/")[0], target, field)
        return None

    def _foreseen(self, decision: Decision, error: CelError) -> Diagnostic | None:
        code = (
            "KP215"
            if isinstance(error, NoSuchKey | MissingFact)
            else "KP217"
            if isinstance(error, Overflow)
            else "KP216"
        )
        spans: list[Span] = []
        for rule in decision.rules:
            spans.append(rule.span)
            spans += [] if rule.match.condition_span is None else [rule.match.condition_span]
            for unit in self._units[rule.document]:
                positions = unit.document.positions
                spans += [
                    positions.value(path)
                    for path in (("spec", "variables"), ("spec", "match"))
                    if positions.has(path)
                ]
        found = self._within((code,), spans)
        named = {word for pair in _QUOTED.findall(error.message) for word in pair if word}
        named |= {word for word in (error.message.partition(": ")[2],) if word}
        likely = [one for one in found if any(word in one.message for word in named)]
        return next(iter((*likely, *found)), None)

    def _within(self, codes: tuple[str, ...], spans: list[Span]) -> list[Diagnostic]:
        return [
            one for one in self._warnings if one.code in codes and any(span.holds(one.span) for span in spans)
        ]

    def _misnamed(self, kind: str, target: str, field: str) -> Diagnostic | None:
        """The KP307 on a document that says the same of a subject whose name is nearly that of the target."""
        for key, decision in self._graph.decisions.items():
            if (key.kind, key.field) != (kind, field) or key.target == target:
                continue
            subject = target.partition("/")[2]
            for unit in (one for rule in decision.rules for one in self._units[rule.document]):
                if nearest(key.subject, (subject,)) or unit.document.name == subject:
                    found = self._within(("KP307",), [unit.document.positions.value()])
                    if found:
                        return found[0]
        return None
