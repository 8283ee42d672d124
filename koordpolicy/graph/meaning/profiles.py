"""Scheduling profiles that stand by themselves: nothing of another profile holds for them."""

from koordpolicy.diagnostics import Severity
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.meaning.constants import values_of
from koordpolicy.graph.rules import Decision
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.kinds.scheduling import SchedulingProfileSpec

_ROOM = frozenset({"allocatable", "free", "requested", "resources"})
"""Groups of a node's facts that say what is left on it."""


def profiles(state: State) -> None:
    """Of a profile without a filter that checks room: KP307 where another one was probably meant, else KP408."""
    units: dict[str, list[Unit]] = {}
    for unit in state.units:  # the lowest layer comes first
        if isinstance(unit.spec, SchedulingProfileSpec):
            units.setdefault(unit.target, []).append(unit)
    roomy = {
        key.target
        for key, decision in state.decisions.items()
        if key.target in units and key.field.startswith("filters[") and _checks_room(state, decision)
    }
    wrong = {found.span.file for found in state.found if found.severity is Severity.ERROR}
    for target, own in units.items():
        if target in roomy or any(unit.document.span.file in wrong for unit in own):
            continue
        first = own[0]
        others = [all_of[0].subject for one, all_of in units.items() if one in roomy]
        place = first.document.positions.value(("spec", "schedulerName"))
        # A document is often called after its profile, so that its name says what a slip was meant to be.
        close = nearest(first.subject, others) or next(
            (one for one in others if one == first.document.name), None
        )
        if close is not None:
            state.found.add(
                "KP307",
                place,
                f"`{first.subject}` begins a profile of its own, where nothing checks whether a node has room",
                help=f"did you mean `{close}`? A profile of its own gets no filters of another",
                severity=Severity.WARNING,
            )
        else:
            state.found.add(
                "KP408",
                place,
                f"no filter of the profile `{first.subject}` checks whether a node has room",
                help="add the filter `{name: NodeResourcesFit, plugin: NodeResourcesFit}` and the others that its pods need",
                severity=Severity.WARNING,
            )


def _checks_room(state: State, decision: Decision) -> bool:
    """Whether a field of a filter names the plugin for room, or reads what is left on a node."""
    if decision.key.field.endswith("].plugin"):
        named = [state.plugins.get(str(said.value)) for said in values_of(state, decision)]
        return any(plugin is not None and plugin.checks_room for plugin in named)
    return any(
        record == "node" and path.partition(".")[0] in _ROOM
        for rule in decision.rules
        for record, path in facts_of(rule.value)
    )
