"""Dangerous values: they are well formed, and would do harm or nothing at all."""

from collections.abc import Iterator, Mapping

from koordpolicy.diagnostics import Span
from koordpolicy.graph.analysis.possible import PossibleValue
from koordpolicy.graph.bounds import Range, range_of
from koordpolicy.graph.meaning.constants import (
    constants_of,
    elements_of,
    entry_place,
    place_of,
    possible_of,
)
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
            value = show(bounds.type, one.value) if one.known else "always out of range"
            for name, place in _places(state, rule, one):
                if place in told:
                    continue
                told.add(place)
                of = f" of `{name}`" if name else ""
                state.found.add(
                    "KP406",
                    place,
                    f"`{decision.key}`{of} is {value}: {bounds.why}",
                    help=f"write {bounds.words}",
                )


def _places(state: State, rule: Rule, one: PossibleValue) -> Iterator[tuple[str, Span]]:
    """Where a value stands; in a mapping each name that has it, with its own place."""
    names = [
        str(name)
        for whole in possible_of(state, rule)
        if whole.known and whole.node is one.node and isinstance(whole.value, Mapping)
        for name, value in whole.value.items()
        if value == one.value
    ]
    for name in names:
        yield name, entry_place(state, one.rule, name) or place_of(state, one).span
    if not names:
        yield "", place_of(state, one).span


def _negative(state: State, decision: Decision, told: set[Rule]) -> None:
    """A negative share of something is a slip, wherever it is used."""
    if not _is_percent(decision.type):
        return
    for rule, value in constants_of(state, decision):
        if rule in told:
            continue
        for name, number in _shares(value):
            if number < 0:
                told.add(rule)
                of = f" of `{name}`" if name else ""
                state.found.add(
                    "KP406",
                    entry_place(state, rule, name) or rule.span,
                    f"`{decision.key}` has a negative share{of}, {show(PERCENT, number)}",
                    help=f"shares count from 0%; did you mean `{show(PERCENT, -number)}`?",
                )


def _shares(value: object) -> Iterator[tuple[str, float]]:
    """The numbers of a value, in a mapping with their names; of a list the least one."""
    match value:
        case Mapping():
            yield from ((str(name), one) for name, one in value.items() if isinstance(one, float))
        case list() | tuple():
            yield "", min((one for one in value if isinstance(one, float)), default=0.0)
        case float():
            yield "", value


def _is_percent(type: Type) -> bool:
    return type.unit is Unit.PERCENT or any(_is_percent(inner) for inner in type.params)
