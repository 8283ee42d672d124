"""What decisions may cost, below the findings of a check."""

from collections.abc import Iterator

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.plan import EvaluationPlan, Way, plans


def cost_lines(graph: RuleGraph, width: int) -> Iterator[str]:
    """A table of decisions, the dearest first; constants are only counted."""
    found = plans(graph)
    shown = [plan for plan in found if plan.way is not Way.CONSTANT]
    ways = max((len(plan.way) for plan in shown), default=0)
    yield f"{'steps':>10}  {'evaluated':<{ways}}  decision"
    for plan in shown:
        yield f"{plan.cost:>10,}  {plan.way:<{ways}}  {plan.decision}"
        yield from _remarks(plan, width)
    constants = len(found) - len(shown)
    yield f"and {constants:,} constant{'' if constants == 1 else 's'}"
    yield ""


def _remarks(plan: EvaluationPlan, width: int) -> Iterator[str]:
    indent = " " * 12
    if plan.loop and plan.cost >= 1000:
        yield f"{indent}walks {plan.loop}"[:width]
    for reason in plan.reasons:
        yield f"{indent}one by one: {reason}"[:width]
