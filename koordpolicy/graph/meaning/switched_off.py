"""Documents laid over something that is switched off: what they say is read, and nothing follows from it."""

from collections.abc import Iterator
from typing import Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir

_SWITCH: Final = "enabled"
_STRATEGIES: Final = "strategies["


def switched_off(state: State) -> None:
    """KP418, once for each document and switch, where a field of the bundle stands under one that others leave off.

    A switch that the bundle itself has turned off is meant. Strategies of the descheduler have a check of their own.
    """
    told: set[tuple[str, DecisionKey]] = set()
    for rule in state.rules:
        if rule.layer != state.own.name or rule.terms is not None:
            continue
        for key in _switches(rule.key):
            decision = state.decisions.get(key)
            if decision is None or (rule.document, key) in told:
                continue
            by = _by(decision)
            if not _is_off(decision, by):
                continue
            if any(other.layer == state.own.name for other in decision.rules):
                continue
            told.add((rule.document, key))
            state.found.add(
                "KP418",
                rule.span,
                f"nothing follows from `{rule.key.field}` while `{key}` is false",
                help=f"say `{key.field}: true` as well, or leave it: then it waits for somebody who does",
                notes=() if by is None else (Note("it is switched off here", by.span),),
                severity=Severity.NOTE,
            )
            break  # what stands above is off as well, or matters no more


def _switches(key: DecisionKey) -> Iterator[DecisionKey]:
    """The switches above a field, the outermost first."""
    parts = key.field.split(".")
    for depth in range(len(parts)):
        field = ".".join((*parts[:depth], _SWITCH))
        if field != key.field and not field.startswith(_STRATEGIES):
            yield DecisionKey(key.kind, key.subject, field)


def _is_off(decision: Decision, by: Rule | None) -> bool:
    """Whether a switch is false whatever is asked about, where `by` is the first rule that holds everywhere."""
    asked = decision.rules if by is None else decision.rules[: decision.rules.index(by) + 1]
    values = [rule.value for rule in asked] + ([decision.default] if by is None else [])
    return all(isinstance(value, ir.Const) and value.value is False for value in values)


def _by(decision: Decision) -> Rule | None:
    """The first rule that holds everywhere; None where the default does."""
    return next((rule for rule in decision.rules if rule.match.test is None), None)
