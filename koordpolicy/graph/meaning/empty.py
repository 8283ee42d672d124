"""Documents that say nothing: they are read, and change no decision."""

from functools import partial
from typing import Final

from koordpolicy.diagnostics import Severity
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.kinds import PolicySpec, slot_values
from koordpolicy.language.kinds.rollout import RolloutSpec


def empty(state: State) -> None:
    """KP412 for each policy of the bundle that sets no field."""
    if state.found.has_errors:
        return  # what could not be read may have said something
    told = {found.span for found in state.found if found.code == "KP311"}
    stepped = any(isinstance(unit.spec, RolloutSpec) and unit.spec.steps for unit in state.units)
    for unit in state.units:
        if (
            unit.layer != len(state.layers) - 1
            or unit.document.mended
            or not isinstance(unit.spec, PolicySpec)
        ):
            continue
        key = ("says something", unit, stepped)
        if state.cache.get(key, partial(_says_something, unit, stepped=stepped)):
            continue
        if unit.document.span in told:
            continue
        state.found.add(
            "KP412",
            unit.document.span,
            f"`{unit.id}` has no steps"
            if isinstance(unit.spec, RolloutSpec)
            else f"`{unit.id}` sets nothing",
            help="say some; without them a revision goes live at once, everywhere"
            if isinstance(unit.spec, RolloutSpec)
            else "say what it is to change, or remove it",
            severity=Severity.WARNING,
        )


_ABOUT: Final = frozenset(("match", "precedence", "variables", "resource", "schedulerName"))
"""Fields that say what a document is about, and nothing of it."""


def _says_something(unit: Unit, *, stepped: bool) -> bool:
    """Whether a document sets a field; `stepped` says that some Rollout has steps, without which none has an effect."""
    if isinstance(unit.spec, RolloutSpec) and not stepped:
        return False
    if next(iter(slot_values(unit.spec)), None) is not None:
        return True
    spec = unit.document.data.get("spec")
    return isinstance(spec, dict) and any(said and field not in _ABOUT for field, said in spec.items())
