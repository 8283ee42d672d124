"""Requirements that come out the same whatever they are asked of: they refuse everything, or nothing."""

import re
from functools import partial
from typing import Final

from koordpolicy.diagnostics import Severity
from koordpolicy.graph.analysis.outcome import outcome
from koordpolicy.graph.meaning.constants import values_of
from koordpolicy.graph.operations import operations_of
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir

_WHAT: Final = (
    ("AdmissionRule", re.compile(r"require"), "every request is refused", "no request is ever refused"),
    ("SchedulingProfile", re.compile(r"filters\[.*\]\.require"), "no node is ever taken", "no node is ever refused"),
    ("Rollout", re.compile(r"guards\[.*\]\.require"), "every rollout ends at once", "no rollout is ever stopped"),
)  # fmt: skip
"""By kind and field: what a requirement means that never holds, and one that always does."""


def requirements(state: State) -> None:
    """KP410 for requirements of the bundle that never or always hold, KP406 for an AdmissionRule of no operation."""
    if state.found.has_errors:
        return
    for key, decision in state.decisions.items():
        for kind, field, never, always in _WHAT:
            if key.kind == kind and field.fullmatch(key.field):
                for rule in decision.rules:
                    if rule.layer == state.own.name:
                        _judge(state, decision, rule, never, always)
        if (key.kind, key.field) == ("AdmissionRule", "operations"):
            _asked(state, decision)


def _judge(state: State, decision: Decision, rule: Rule, never: str, always: str) -> None:
    key = decision.key
    operations = tuple(sorted(operations_of(state.decisions, key))) if key.kind == "AdmissionRule" else ()
    comes = state.cache.get(
        ("outcome", rule, operations), partial(outcome, state.resolve_constants(rule.value), operations)
    )
    if comes is None or _is_off(state, key) or _is_told(state, rule):
        return
    if not comes and (rule.match.test is not None or _only_tells(state, key)):
        return  # who selects what is refused writes `require: false`
    state.found.add(
        "KP410",
        rule.span,
        f"`{key}` is {'true' if comes else 'false'} whatever it is asked of: {always if comes else never}",
        help="to turn it off, say `enabled: false`"
        if comes and key.kind != "Rollout"
        else "say what has to hold, or select what it is for by `match`",
        severity=Severity.WARNING,
    )


def _is_told(state: State, rule: Rule) -> bool:
    """Whether the expression was found to be the same whatever is asked already."""
    return any(one.code == "KP214" and rule.span.holds(one.span) for one in state.found)


def _is_off(state: State, key: DecisionKey) -> bool:
    """Whether it is turned off wherever somebody says so."""
    head = key.field.rpartition(".")[0]
    decision = state.decisions.get(
        DecisionKey(key.kind, key.subject, f"{head}.enabled" if head else "enabled")
    )
    return decision is not None and any(said.value is False for said in values_of(state, decision))


def _only_tells(state: State, key: DecisionKey) -> bool:
    """Whether an AdmissionRule never refuses, but warns or records."""
    decision = state.decisions.get(DecisionKey(key.kind, key.subject, "enforcement"))
    if key.kind != "AdmissionRule" or decision is None or not decision.rules:
        return False
    return all(said.value != "enforce" for said in values_of(state, decision))


def _asked(state: State, decision: Decision) -> None:
    for rule in decision.rules:
        if isinstance(rule.value, ir.Const) and rule.value.value in ((), []):
            state.found.add(
                "KP406",
                rule.span,
                f"`{decision.key}` is empty: the rule is asked of no request",
                help="name `CREATE`, `UPDATE` or `DELETE`; to turn the rule off, say `enabled: false`",
            )
