"""Scores out of their range, or that look like shares: all are weighed against each other as numbers from 0 to 100."""

import re
from typing import Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.decide import Expressions
from koordpolicy.graph.meaning.constants import elements_of, place_of, values_of
from koordpolicy.graph.meaning.score_range import outside
from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import DOUBLE, INT

_VALUE: Final = re.compile(r"scores\[(?P<name>.*)\]\.value")
_LEAST, _MOST = 0, 100


def scores(state: State) -> None:
    """KP409 for a score of the bundle that is not from 0 to 100 always, or that is a share of something."""
    expressions = state.expressions
    for key, decision in state.decisions.items():
        found = _VALUE.fullmatch(key.field) if key.kind == "SchedulingProfile" else None
        if found is None or _is_normalized(state, key, found["name"]) or _is_off(state, key, found["name"]):
            continue
        _hold(state, decision, expressions)


def _is_normalized(state: State, key: DecisionKey, name: str) -> bool:
    """Whether what is said is brought to 0 to 100 afterwards."""
    decision = state.decisions.get(DecisionKey(key.kind, key.subject, f"scores[{name}].normalize"))
    return decision is not None and any(said.value != "None" for said in values_of(state, decision))


def _is_off(state: State, key: DecisionKey, name: str) -> bool:
    """Whether nobody is asked for it."""
    decision = state.decisions.get(DecisionKey(key.kind, key.subject, f"scores[{name}].enabled"))
    return decision is not None and any(said.value is False for said in values_of(state, decision))


def _hold(state: State, decision: Decision, expressions: Expressions) -> None:
    for rule in decision.rules:
        if rule.layer != state.own.name:
            continue
        if _is_share(rule.value):
            state.found.add(
                "KP409",
                rule.span,
                f"`{decision.key}` is a share, from 0 to 1, where scores go from 0 to 100",
                help="multiply it by 100.0, or it weighs next to nothing",
                severity=Severity.WARNING,
            )
            continue
        possible = elements_of(state, rule)
        never = [one for one in possible if one.low > _MOST or one.high < _LEAST]
        if not never and not all(one.low >= _LEAST and one.high <= _MOST for one in possible):
            _can_leave(state, decision, rule, expressions)
        for one in never:
            value = (
                show(DOUBLE, one.value) if one.known else f"always {'above' if one.low > _MOST else 'below'}"
            )
            state.found.add(
                "KP409",
                place_of(state, one).span,
                f"`{decision.key}` is {value}, where scores go from 0 to 100",
                help="choose a number from 0 to 100; how much it counts is its `weight`",
                severity=Severity.WARNING,
            )


def _can_leave(state: State, decision: Decision, rule: Rule, expressions: Expressions) -> None:
    """A score that some node has outside the range: it drowns all others, or is drowned, there alone."""
    if state.found.has_errors or rule.value.type not in (INT, DOUBLE):
        return
    found = outside(state, expressions, rule, _LEAST, _MOST)
    if found is not None:
        value, such_as = found
        state.found.add(
            "KP409",
            rule.span,
            f"`{decision.key}` can be {value}, where scores go from 0 to 100",
            notes=(Note(f"such as with: {such_as}"),),
            help="keep it within by `min(100.0, max(0.0, ...))`, or bring the values of all nodes there: `normalize: MinMax`",
            severity=Severity.WARNING,
        )


def _is_share(node: ir.Node) -> bool:
    """Whether an expression divides one quantity by another of the same unit, and does no more, in any of its arms."""
    match node:
        case ir.Cond(then=then, otherwise=otherwise):
            arms = [arm for arm in (then, otherwise) if not isinstance(arm, ir.Const)]
            return bool(arms) and all(map(_is_share, arms))
        case ir.Cast(operand=operand):
            return _is_share(operand)
        case ir.Call(overload=overload, args=(one, other)) if overload.startswith("quotient("):
            return one.type.unit is not None and one.type.unit == other.type.unit
        case ir.Call(overload="ratio(percent)"):
            return True
    return False
