"""Invariants of a revision judged, and what is said of those that do not hold."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.diagnostics import Diagnostics, Note, Severity, Span
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
from koordpolicy.graph.rules import Rule
from koordpolicy.language.cel.errors import CelError

Proofs = MutableMapping[str, str]
"""Questions that were proved before, by their keys; the value is the invariant's name."""


@dataclass(frozen=True, slots=True)
class JudgedInvariant:
    """What became of one invariant, and what was `asked`.

    Where it is violated, `facts` and `values` are those of the example, as text, and `rules` are what decides there; `failed`
    says what of the invariant has no value there, if that is how it is violated. One that is proved is `idle` where it is
    asked of no input.
    """

    invariant: Invariant
    verdict: Verdict
    asked: Question
    facts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    idle: bool = False
    rules: tuple[Rule, ...] = ()

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
        rules = _deciding(graph, invariant, verdict) if isinstance(verdict, Counterexample) else ()
        yield JudgedInvariant(invariant, verdict, asked, facts, values, failed, idle, rules)


def _deciding(graph: RuleGraph, invariant: Invariant, found: Counterexample) -> tuple[Rule, ...]:
    """The rules that decide what an invariant is about, on an example."""
    rules: dict[Rule, None] = {}
    for key in invariant.decisions.values():
        decision = graph.decisions.get(key)
        if decision is not None:
            given = (found.records.get(root, {}) for root in decision.roots)
            rule = graph.deciding_rule(str(key), *given)
            if rule is not None:
                rules.setdefault(rule)
    return tuple(rules)


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
                    notes=tuple(_decided(rule, own) for rule in one.rules if rule.span != span),
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


def _decided(rule: Rule, own: str) -> Note:
    """Which rule decided, shown where it is one of the layer that is checked."""
    if rule.layer == own:
        return Note(f"`{rule.document}` decides here", rule.span)
    return Note(f"`{rule.document}` of `{rule.layer}` decides it")


def one_for_each_slip(known: Diagnostics, said: Diagnostics) -> Diagnostics:
    """What is said of invariants beside what is known already, one finding for a rule.

    An invariant of the bundle's own that a rule violates says most; what else is said of that rule's value follows from the
    same slip, as what a pack requires of a rule does that promises too much, or nothing.
    """
    blamed = {
        note.span
        for one in said
        for note in one.notes
        if one.code == "KP801" and one.severity is Severity.ERROR and note.span is not None
    }
    formulas = {one.span for one in known if one.code == "KP406"}
    found = Diagnostics()
    for one in known:
        if one.code != "KP406" or one.severity is Severity.ERROR or one.span not in blamed:
            found.append(one)
    for one in said:
        follows = one.code == "KP801" and one.severity is Severity.WARNING
        if not (follows and one.span in blamed | formulas):
            found.append(one)
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
