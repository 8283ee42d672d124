"""How decisions are computed and what that may cost, for people who look after the budget."""

from dataclasses import dataclass
from enum import StrEnum

from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.rules import Decision
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.cost import estimate
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.columns import compile_columns
from koordpolicy.language.facts import Component

_ROW_OF_TABLE = "node"
_SEES_ALL_NODES = frozenset({Component.SCHEDULER, Component.MANAGER, Component.DESCHEDULER})


class Way(StrEnum):
    """What happens when a decision is asked."""

    CONSTANT = "constant"
    ROW = "one by one"
    COLUMNS = "all nodes at once"
    MIXED = "partly one by one"


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """One decision: steps of one evaluation at most, the dearest loop, and how it runs.

    `reasons` say why parts of a decision over all nodes are evaluated node by node.
    """

    decision: str
    cost: int
    loop: str
    way: Way
    reasons: tuple[str, ...] = ()


def plans(graph: RuleGraph) -> tuple[EvaluationPlan, ...]:
    """The plan of every decision, the dearest first."""
    found = (_plan(graph, decision) for decision in graph.decisions.values())
    return tuple(sorted(found, key=lambda plan: (-plan.cost, plan.decision)))


def _plan(graph: RuleGraph, decision: Decision) -> EvaluationPlan:
    name = str(decision.key)
    expression = graph.expression(name)
    cost = estimate(expression)
    loop = next((loop.name or "a computed list" for loop in cost.loops), "")
    if isinstance(expression, ir.Const):
        return EvaluationPlan(name, cost.maximum, loop, Way.CONSTANT)
    over_nodes = decision.components & _SEES_ALL_NODES and _ROW_OF_TABLE in {
        root for root, _ in facts_of(expression)
    }
    if not over_nodes:
        return EvaluationPlan(name, cost.maximum, loop, Way.ROW)
    program = compile_columns(expression, _ROW_OF_TABLE, decision.roots, budget=graph.budget)
    reasons = tuple(dict.fromkeys(part.reason for part in program.fallback))
    return EvaluationPlan(name, cost.maximum, loop, Way.MIXED if reasons else Way.COLUMNS, reasons)
