"""Dangerous values: they are well formed, and would do harm or nothing at all."""

from collections.abc import Iterable, Mapping

from koordpolicy.diagnostics import Span
from koordpolicy.graph.bounds import Range, range_of
from koordpolicy.graph.meaning.constants import constants_of, elements_of, place_of
from koordpolicy.graph.notation import show
from koordpolicy.graph.passes.parameters import PREFIX
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel.types import PERCENT, Type, Unit


def ranges(state: State) -> None:
    """KP406 for values outside their range, in whichever arm of an expression, and for negative shares of parameters."""
    told: set[Rule] = set()
    places: set[Span] = set()
    for key, decision in state.decisions.items():
        bounds = range_of(key, decision.type)
        if bounds is not None:
            _hold(state, decision, bounds, places)
        elif key.field.startswith(PREFIX):
            _negative(state, decision, told)


def _hold(state: State, decision: Decision, bounds: Range, told: set[Span]) -> None:
    permitted = bounds.permitted
    for rule in decision.rules:
        for one in elements_of(state, rule):
            if not permitted.excludes(one.low, one.high):
                continue
            place = place_of(state, one).span
            if place in told:
                continue
            told.add(place)
            value = show(bounds.type, one.value) if one.known else "always out of range"
            state.found.add(
                "KP406",
                place,
                f"`{decision.key}` is {value}: {bounds.why}",
                help=f"write {bounds.words}",
            )


def _negative(state: State, decision: Decision, told: set[Rule]) -> None:
    """A negative share of something is a slip, wherever it is used."""
    if not _is_percent(decision.type):
        return
    for rule, value in constants_of(state, decision):
        held = list(value.values()) if isinstance(value, Mapping) else value
        numbers: Iterable[object] = held if isinstance(held, list | tuple) else (held,)
        worst = min((number for number in numbers if isinstance(number, float)), default=0.0)
        if worst < 0 and rule not in told:
            told.add(rule)
            state.found.add(
                "KP406",
                rule.span,
                f"`{decision.key}` has a negative share, {show(PERCENT, worst)}",
                help=f"shares count from 0%; did you mean `{show(PERCENT, -worst)}`?",
            )


def _is_percent(type: Type) -> bool:
    return type.unit is Unit.PERCENT or any(_is_percent(inner) for inner in type.params)
