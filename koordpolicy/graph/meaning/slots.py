"""Values that expressions can have where a slot takes but some: its choices, its range, its pattern."""

from dataclasses import replace

from koordpolicy.diagnostics import Fix, Note, Span
from koordpolicy.graph.analysis.possible import PossibleValue
from koordpolicy.graph.bounds import range_of
from koordpolicy.graph.expressions import fix_within
from koordpolicy.graph.meaning.constants import elements_of, place_of, values_of
from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel.permitted import Permitted
from koordpolicy.language.cel.types import Type
from koordpolicy.language.kinds.literals import choice_problem, shortened
from koordpolicy.language.kinds.slots import Slot


def slots(state: State) -> None:
    """KP107 for a value that an expression can have and its slot does not take.

    What lies beyond bounds of meaning is another finding (KP406), and what only run time can tell is refused there.
    """
    held = {draft.key: _permitted(state, draft.slot) for draft in state.drafts}
    told: set[Span] = set()
    for key, decision in state.decisions.items():
        permitted = held.get(key) or _by_plugin(state, key)
        if permitted is None or range_of(key, decision.type) is not None:
            continue
        for rule in decision.rules:
            for one in elements_of(state, rule):
                if _excluded(permitted, one):
                    _report(state, decision, rule, one, permitted, told)


def _permitted(state: State, slot: Slot) -> Permitted | None:
    return state.cache.same("permitted", (slot,), lambda: slot.permitted)


def _by_plugin(state: State, key: DecisionKey) -> Permitted | None:
    """What the plugin of a filter or score takes as a parameter; None for anything."""
    entry, found, parameter = key.field.partition("].parameters.")
    chosen = state.decisions.get(replace(key, field=f"{entry}].plugin")) if found else None
    for said in values_of(state, chosen) if chosen is not None else ():
        plugin = state.plugins.get(str(said.value))
        choices = () if plugin is None else plugin.choices.get(parameter, ())
        if choices:
            return Permitted(" or ".join(f"`{choice}`" for choice in choices), choices=choices)
    return None


def _excluded(permitted: Permitted, one: PossibleValue) -> bool:
    return not permitted.admits(one.value) if one.known else permitted.excludes(one.low, one.high)


def _report(
    state: State, decision: Decision, rule: Rule, one: PossibleValue, permitted: Permitted, told: set[Span]
) -> None:
    place = place_of(state, one)
    if place.span in told:
        return
    told.add(place.span)
    notes = () if one.rule is rule else (Note(f"used by `{decision.key}`", rule.span),)
    help = f"write {permitted.words}"
    fix: Fix | None = None
    if not one.known:
        message = f"`{decision.key}` is {_between(decision.type, one)} here, which is out of range"
    elif permitted.choices and isinstance(one.value, str):
        problem = choice_problem(one.value, permitted.choices, permitted.words)
        message, help = problem.message, problem.help or help
        if problem.replacement and place.path is not None:
            new = f"'{problem.replacement}'"
            fix = fix_within(place.document, place.path, place.start, place.end, new, safe=problem.safe)
    elif permitted.pattern:
        message = f"`{shortened(str(one.value))}` is not {permitted.words.split(', such as')[0]}"
    else:
        message = f"`{show(decision.type, one.value)}` is out of range"
    state.found.add("KP107", place.span, message, help=help, notes=notes, fix=fix)


def _between(type: Type, one: PossibleValue) -> str:
    """An interval in words."""
    if one.low == one.high:
        return show(type, one.low)
    if one.low == -float("inf"):
        return f"at most {_number(one.high)}"
    if one.high == float("inf"):
        return f"at least {_number(one.low)}"
    return f"{_number(one.low)} to {_number(one.high)}"


def _number(bound: float) -> str:
    return f"{bound:g}"
