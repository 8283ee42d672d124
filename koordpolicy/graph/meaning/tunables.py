"""Marks of what `koordpolicy tune` may change."""

from koordpolicy.graph.state import State
from koordpolicy.graph.tunables import tunables_of


def tunables(state: State) -> None:
    """KP420 for marks that mean nothing."""
    for unit in state.units:
        tunables_of(unit.document, state.found)
