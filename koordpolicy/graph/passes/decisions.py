"""Decisions: rules that answer the same question meet, sorted by rank; cycles are rejected."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Final

from koordpolicy.diagnostics import Note
from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.rules import DecisionKey, Rule
from koordpolicy.graph.slots import decision_of
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.kinds import PolicySpec
from koordpolicy.language.kinds.walk import PARAMETER

_PARTS: Final = attrgetter("kind", "subject", "field")
"""As keys compare, in fewer steps."""


def decisions(state: State) -> None:
    """Fill `decisions`. Those that stand in a cycle are reported and left out."""
    drafts = {draft.key: draft for draft in state.drafts}
    grouped: dict[DecisionKey, list[Rule]] = defaultdict(list)
    for rule in state.rules:
        grouped[rule.key].append(rule)
    for key in sorted(grouped, key=_PARTS):
        ordered = grouped[key]
        if len(ordered) > 1:
            ordered.sort(key=lambda rule: rule.id)
            ordered.sort(key=lambda rule: rule.rank.order, reverse=True)
        kind, slot = drafts[key].home.kind, drafts[key].slot
        make = partial(decision_of, key, kind, slot, tuple(ordered))
        state.decisions[key] = state.cache.same(("decision", key), (kind, slot, *ordered), make)
    _add_unset_parameters(state)
    finished: set[DecisionKey] = set()
    for key in list(state.decisions):
        _visit(state, key, [], finished)


def _add_unset_parameters(state: State) -> None:
    """A declared parameter that nobody sets is none when it is optional, and a mistake otherwise.

    One whose only value was refused is set, if wrongly: that has been said already.
    """
    declarers: dict[tuple[str, str], Unit] = {}
    valued: set[tuple[str, str]] = set()
    for unit in state.units:  # the lowest layer comes first: packs declare, bundles set
        if isinstance(unit.spec, PolicySpec):
            for name, parameter in unit.spec.parameters.items():
                declarers.setdefault((unit.target, name), unit)
                if parameter.value is not None:
                    valued.add((unit.target, name))
    for (target, name), unit in declarers.items():
        kind = state.parameter_types(target).get(name)
        key = DecisionKey(unit.kind.name, unit.subject, f"parameters.{name}")
        if kind is None or key in state.decisions or (target, name) in valued:
            continue
        if kind.name != "optional_type":
            state.found.add(
                "KP311",
                unit.document.positions.key(("spec", "parameters", name)),
                f"the parameter `{name}` has no value anywhere",
                help="give it a `value`, or say `optional: true`",
            )
            continue
        state.decisions[key] = decision_of(key, unit.kind, replace(PARAMETER, type=kind))


def _visit(state: State, key: DecisionKey, trail: list[DecisionKey], finished: set[DecisionKey]) -> None:
    """Depth-first over parameter references; each cycle is reported once, at its first rule."""
    if key in finished or key not in state.decisions:
        return
    if key in trail:
        _report(state, trail[trail.index(key) :])
        return
    trail.append(key)
    for rule in state.decisions[key].rules:
        for name in sorted(rule.parameters) if rule.parameters else ():
            _visit(state, parameter_key(rule.key, name), trail, finished)
    trail.pop()
    finished.add(key)


def _report(state: State, cycle: list[DecisionKey]) -> None:
    spans = [state.decisions[key].rules[0].span for key in cycle]
    path = " → ".join(f"`{key.field}`" for key in [*cycle, cycle[0]])
    others = list(zip(cycle, spans, strict=True))[1:]
    state.found.add(
        "KP302",
        spans[0],
        f"these decisions need each other: {path}",
        notes=tuple(Note(f"`{key.field}`", span) for key, span in others),
        help="break the circle: one of them needs a value of its own",
    )
    for key in cycle:
        state.decisions[key] = replace(state.decisions[key], rules=())
