"""What a bundle permits its decisions to cost: read of its PolicyBundle, and of the documents that become a graph."""

from collections.abc import Iterator

from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.kinds.bundle import Budgets, PolicyBundleSpec


def budgets_of(graph: RuleGraph) -> Budgets:
    """The budgets of the highest layer that says any; the usual ones where none does."""
    return graph.once("budgets", lambda: _budgets(graph))


def _budgets(graph: RuleGraph) -> Budgets:
    said = [
        (unit.layer, unit.spec.budgets)
        for unit in graph.units
        if isinstance(unit.spec, PolicyBundleSpec) and unit.spec.budgets is not None
    ]
    return max(said, key=lambda pair: pair[0])[1] if said else Budgets()


def budget_of(state: State) -> int:
    """Units that one evaluation of a decision may cost: what the bundle says, within what the operator permits."""
    asked = next((budgets.cost_per_decision for _, budgets in budgets_asked(state)), state.max_cost)
    return min(asked, state.max_cost)


def budgets_asked(state: State) -> Iterator[tuple[Unit, Budgets]]:
    """The bundle that sets a budget; packs below it say nothing here."""
    own = len(state.layers) - 1
    for unit in state.units:
        if unit.layer == own and isinstance(unit.spec, PolicyBundleSpec) and unit.spec.budgets is not None:
            yield unit, unit.spec.budgets
