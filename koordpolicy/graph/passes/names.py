"""Names: every slot that a document sets becomes a draft of a rule for a decision."""

from functools import partial

from koordpolicy.diagnostics import Diagnostics, Note
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import Draft, State, Unit
from koordpolicy.language.kinds import slot_values


def names(state: State) -> None:
    """Fill `drafts`. Documents without slots (tests, bundles, libraries) contribute none."""
    for unit in state.units:
        found, drafts = state.cache.get(("names", unit), partial(_drafts, unit))
        state.found.extend(found)
        state.drafts += drafts


def _drafts(unit: Unit) -> tuple[Diagnostics, list[Draft]]:
    found = Diagnostics()
    first_of: dict[str, Draft] = {}
    for value in slot_values(unit.spec):
        key = DecisionKey(unit.kind.name, unit.subject, value.field)
        draft = Draft(key, unit, value.slot, value.path, value.raw, value.conditions)
        first = first_of.setdefault(value.field, draft)
        if first is not draft:
            _report_twin(found, unit, first, draft)
    return found, list(first_of.values())


def _report_twin(found: Diagnostics, unit: Unit, first: Draft, second: Draft) -> None:
    """Two list items of one name in one document: which of them is meant?"""
    at = next((depth for depth, step in enumerate(second.path) if isinstance(step, int)), None)
    if at is None:
        return
    place = (*second.path[: at + 1], "name")
    other = (*first.path[: at + 1], "name")
    named = second.key.field.partition("[")[2].partition("]")[0]
    found.add(
        "KP309",
        unit.document.positions.value(place),
        f"`{named}` is defined twice",
        notes=(Note("the other one", unit.document.positions.value(other)),),
        help="give one of them another name",
    )
