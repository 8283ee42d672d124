"""What a bundle permits its decisions to cost beside the cost of each: read of its PolicyBundle."""

from koordpolicy.graph.graph import RuleGraph
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
