"""Invariants of a revision judged, and what is said of those that do not hold."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.diagnostics import Diagnostics, Severity, Span
from koordpolicy.graph.analysis.outcome import outcome
from koordpolicy.graph.decide import parameter_key, rules_behind
from koordpolicy.graph.diff.compare import known_texts
from koordpolicy.graph.diff.words import value_text
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.invariants import Invariant
from koordpolicy.graph.proof.examples import facts_within, telling
from koordpolicy.graph.proof.invariants import (
    Question,
    failure,
    is_asked_of_nothing,
    prove,
    question,
    unanswered,
)
from koordpolicy.graph.proof.verdict import Counterexample, GaveUp, ProofBudget, Proved, Verdict
from koordpolicy.graph.reads import shown_value
from koordpolicy.language.cel.errors import CelError

Proofs = MutableMapping[str, str]
"""Questions that were proved before, by their keys; the value is the invariant's name."""


@dataclass(frozen=True, slots=True)
class JudgedInvariant:
    """What became of one invariant, and what was `asked`.

    Where it is violated, `facts` and `values` are those of the example, as text; `failed` says what of the invariant has
    no value there, if that is how it is violated. One that is proved is `idle` where it is asked of no input.
    """

    invariant: Invariant
    verdict: Verdict
    asked: Question
    facts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    idle: bool = False

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Of an invariant that is proved, the decisions that had no answer on any everyday input: of them nothing is shown."""
        return unanswered(self.asked) if isinstance(self.verdict, Proved) else ()


def judge(
    graph: RuleGraph,
    invariants: Sequence[Invariant],
    budget: ProofBudget,
    proofs: Proofs,
    before: RuleGraph | None = None,
) -> Iterator[JudgedInvariant]:
    """Each invariant that can be asked: those that speak of two revisions only with the one `before`."""
    named = known_texts(graph, *([] if before is None else [before]))
    for invariant in invariants:
        if invariant.compares and before is None:
            continue
        asked = question(graph, invariant, before)
        key = asked.key
        if key in proofs:
            idle = is_asked_of_nothing(asked, named, budget)
            yield JudgedInvariant(invariant, Proved(), asked, idle=idle)
            continue
        verdict = prove(asked, named, budget)
        if isinstance(verdict, Proved):
            proofs[key] = invariant.name
        facts, values = _told(asked, verdict) if isinstance(verdict, Counterexample) else ({}, {})
        failed = _failed(asked, verdict) if isinstance(verdict, Counterexample) else ""
        idle = isinstance(verdict, Proved) and is_asked_of_nothing(asked, named, budget)
        yield JudgedInvariant(invariant, verdict, asked, facts, values, failed, idle)


def _failed(asked: Question, found: Counterexample) -> str:
    failed = failure(asked, found.records)
    if failed is None:
        return ""
    part, why = failed
    return f"the requirement fails: {why}" if part == "require" else f"`where` fails: {why}"


def _told(asked: Question, found: Counterexample) -> tuple[dict[str, str], dict[str, str]]:
    read = facts_within(found.records, asked.condition, *([] if asked.given is None else [asked.given]))
    facts = {name: shown_value(kind, value) for name, (kind, value) in read.items()}
    answers = asked.values(found.records)
    return facts, {name: _value(asked, name, value) for name, value in answers.items()}


def _value(asked: Question, name: str, value: Any) -> str:
    return (
        f"no answer: {value.message}"
        if isinstance(value, CelError)
        else value_text(asked.told[name].type, value)
    )


def findings_of(judged: Iterator[JudgedInvariant], graph: RuleGraph, own: str) -> Diagnostics:
    """KP801 for what does not hold, KP802 for what is neither proved nor refuted, KP804 for what is asked of no input.

    Of what packs say, the `own` layer is warned, where it changes what was said of.
    """
    found = Diagnostics()
    for one in judged:
        span, of_pack = _place(one.invariant, graph, own)
        match one.verdict:
            case Counterexample():
                values = ", ".join(f"`{name}` is {value}" for name, value in one.values.items())
                values = f"{one.failed}; {values}" if one.failed else values
                found.add(
                    "KP801",
                    span,
                    f"`{one.invariant.name}` does not hold: {values}",
                    help="for example with " + ", ".join(telling(one.facts)),
                    severity=Severity.WARNING if of_pack else Severity.ERROR,
                )
            case GaveUp(why=why):
                found.add(
                    "KP802",
                    span,
                    f"`{one.invariant.name}` is not proved",
                    help=f"no input was found that violates it either; gave up: {why}",
                    severity=Severity.WARNING,
                )
            case _ if one.idle and one.invariant.layer == own and not _is_seen_idle(one.invariant):
                found.add(
                    "KP804",
                    span,
                    f"the invariant `{one.invariant.name}` is asked of no input",
                    help="loosen `where`: no input that there can be meets it",
                    severity=Severity.WARNING,
                )
    return found


def _is_seen_idle(invariant: Invariant) -> bool:
    """Whether the compiler has said that no input meets `where`."""
    return invariant.where is not None and outcome(invariant.where) is False


def _place(invariant: Invariant, graph: RuleGraph, own: str) -> tuple[Span, bool]:
    """Where to speak of an invariant, and whether it is a pack's: then at a rule of the own layer that it is about."""
    if invariant.layer == own:
        return invariant.span, False
    keys = list(invariant.decisions.values())
    decided = [rule for key in keys for rule in getattr(graph.decisions.get(key), "rules", ())]
    parameters = [parameter_key(rule.key, name) for rule in decided for name in rule.parameters]
    rules = [*decided, *rules_behind(parameters, graph.decisions)]
    return next((rule.span for rule in rules if rule.layer == own), invariant.span), True
