"""Admission rules that read of what they are not about: a rule on quotas sees no pod."""

from dataclasses import replace
from typing import Final

from koordpolicy.diagnostics import Note, Span
from koordpolicy.graph.meaning.constants import values_of
from koordpolicy.graph.passes.availability import mention, roots_read
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.facts import ROOTS
from koordpolicy.language.kinds.admission import ADMITTED

_KIND: Final = "AdmissionRule"
_USUAL: Final = "pods"


def admitted(state: State) -> None:
    """KP206 once for each name that a document's rules read, and that there is not for the resource they are about."""
    units: dict[tuple[str, str], Unit] = {(unit.layer_name, unit.id): unit for unit in state.units}
    told: set[tuple[Span, str]] = set()
    about: dict[str, tuple[str, Span | None]] = {}
    for key, decision in state.decisions.items():
        if key.kind != _KIND:
            continue
        if key.subject not in about:
            about[key.subject] = _resource(state, key)
        resource, there = about[key.subject]
        known = ADMITTED.get(resource, frozenset(ROOTS))
        for rule in decision.rules:
            for read in sorted(roots_read(state, rule) - known):
                place = mention(units[rule.layer, rule.document], rule, read)
                if (place, read) in told:
                    continue
                told.add((place, read))
                able = ", ".join(f"`{name}`" for name in ROOTS if name in known)
                state.found.add(
                    "KP206",
                    place,
                    f"`{read}` is not available where a rule on `{resource}` is decided",
                    help=f"this decision may read {able}",
                    notes=() if there is None else (Note("the rule's resource", there),),
                )


def _resource(state: State, key: DecisionKey) -> tuple[str, Span | None]:
    """What a rule is about, and where that is said; None where nobody says it."""
    decision = state.decisions.get(replace(key, field="resource"))
    for said in values_of(state, decision) if decision is not None else ():
        return str(said.value), said.span
    return _USUAL, None
