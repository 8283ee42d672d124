"""Filters and scores of scheduling profiles: what is said beside a plugin has an effect."""

from koordpolicy.graph.state import State, Unit
from koordpolicy.language.kinds.scheduling import SchedulingFilter, SchedulingProfileSpec, SchedulingScore

Entry = SchedulingFilter | SchedulingScore


def plugins(state: State) -> None:
    """KP107 for a condition that only a plugin stands beside, KP305 for a parameter that none takes."""
    units = [unit for unit in state.units if isinstance(unit.spec, SchedulingProfileSpec)]
    named = {
        (unit.target, role, entry.name)
        for unit in units
        for role, _, entry in _entries(unit)
        if entry.plugin is not None
    }
    for unit in units:
        for role, at, entry in _entries(unit):
            path = ("spec", role, at)
            if entry.match is not None and entry.match.condition is not None and not _expresses(entry):
                state.found.add(
                    "KP107",
                    unit.document.positions.value((*path, "match", "condition")),
                    f"no expression of `{entry.name}` heeds this condition, and a plugin does not",
                    help="say when a plugin is in use: `enabled: {cel: ...}`",
                )
            if (unit.target, role, entry.name) not in named:
                for name in entry.parameters:
                    state.found.add(
                        "KP305",
                        unit.document.positions.key((*path, "parameters", name)),
                        f"`{entry.name}` has no plugin to take the parameter `{name}`",
                        help="remove it; expressions read `spec.parameters`",
                    )


def _entries(unit: Unit) -> list[tuple[str, int, Entry]]:
    assert isinstance(unit.spec, SchedulingProfileSpec)
    filters: list[tuple[str, int, Entry]] = [("filters", at, one) for at, one in enumerate(unit.spec.filters)]
    return filters + [("scores", at, one) for at, one in enumerate(unit.spec.scores)]


def _expresses(entry: Entry) -> bool:
    if isinstance(entry, SchedulingFilter):
        return entry.require is not None or entry.reason is not None
    return entry.value is not None
