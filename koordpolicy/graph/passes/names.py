"""Names: every slot that a document sets becomes a draft of a rule for a decision."""

from koordpolicy.diagnostics import Note
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import Draft, State, Unit
from koordpolicy.language.kinds import slot_values


def names(state: State) -> None:
    """Fill `drafts`. Documents without slots (tests, bundles, libraries) contribute none."""
    for unit in state.units:
        seen: dict[str, Draft] = {}
        for value in slot_values(unit.spec):
            key = DecisionKey(unit.kind.name, unit.subject, value.field)
            draft = Draft(key, unit, value.slot, value.path, value.raw, value.conditions)
            first = seen.setdefault(value.field, draft)
            if first is draft:
                state.drafts.append(draft)
            else:
                _report_twin(state, unit, first, draft)


def _report_twin(state: State, unit: Unit, first: Draft, second: Draft) -> None:
    """Two list items of one name in one document: which of them is meant?"""
    at = next((depth for depth, step in enumerate(second.path) if isinstance(step, int)), None)
    if at is None:
        return
    place = (*second.path[: at + 1], "name")
    other = (*first.path[: at + 1], "name")
    named = second.key.field.partition("[")[2].partition("]")[0]
    state.found.add(
        "KP309",
        unit.document.positions.value(place),
        f"`{named}` is defined twice",
        notes=(Note("the other one", unit.document.positions.value(other)),),
        help="give one of them another name",
    )
