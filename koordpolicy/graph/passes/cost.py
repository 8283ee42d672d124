"""Cost: no decision may need more steps than the bundle's budget."""

from functools import partial

from koordpolicy.diagnostics import Note, Severity, Span
from koordpolicy.graph.budgets import budget_of, budgets_asked
from koordpolicy.graph.costs import Costs, bound_of
from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel.cost import Loop


def cost(state: State) -> None:
    """Report KP601 at the dearest rule of each decision over budget, each place once; KP602 for a budget too high."""
    budget = budget_of(state)
    _report_raised(state)
    bounds = {rule: state.cache.get(("cost", rule), partial(bound_of, rule)) for rule in state.rules}
    costs = Costs(state.decisions, state.expressions, bounds)
    told: set[Span] = set()
    for decision in state.decisions.values():
        if decision.rules and costs.bound(decision.key) > budget:
            behind = _behind(state, decision)
            if not any(rule.layer == state.own.name for rule in behind):
                continue  # the bundle says nothing here that it could change
            key = ("cost of", decision.default, *behind, *state.constants.values())
            total = state.cache.get(key, partial(costs.decision, decision))
            if total > budget:
                _report(state, decision, costs, total, budget, told)


def _behind(state: State, decision: Decision) -> tuple[Rule, ...]:
    """The rules of a decision, and those of all its parameters."""
    found = dict.fromkeys(decision.rules)
    waiting = list(decision.rules)
    while waiting:
        rule = waiting.pop()
        for name in sorted(rule.parameters):
            parameter = state.decisions.get(parameter_key(rule.key, name))
            fresh = (
                [inner for inner in parameter.rules if inner not in found] if parameter is not None else []
            )
            found.update(dict.fromkeys(fresh))
            waiting += fresh
    return tuple(found)


def _report_raised(state: State) -> None:
    """Report KP602 where the bundle asks for more than the operator permits."""
    for unit, budgets in budgets_asked(state):
        if budgets.cost_per_decision > state.max_cost:
            state.found.add(
                "KP602",
                unit.document.positions.value(("spec", "budgets", "costPerDecision")),
                f"decisions may cost {state.max_cost:,} units at most, not {budgets.cost_per_decision:,}",
                help="a bundle may lower the limit that the operators set with `--max-cost-per-decision`; it is they "
                "who raise it",
                severity=Severity.WARNING,
            )


def _report(state: State, decision: Decision, costs: Costs, total: int, budget: int, told: set[Span]) -> None:
    priced = [(costs.rule(rule), rule) for rule in decision.rules]
    own, dearest = max(priced, key=lambda pair: pair[0].total)
    place = _place(dearest, in_match=own.test > own.value)
    if place in told:
        return
    told.add(place)
    loops = tuple(Note(_walks(loop)) for loop in own.loops[:2])
    state.found.add(
        "KP601",
        place,
        f"`{decision.key}` may cost {total:,} steps, more than {budget:,}",
        notes=loops,
        help="walk fewer elements, or ask for a fact that is already a sum; the budget stands in the bundle's "
        "`budgets.costPerDecision`",
    )


def _place(rule: Rule, *, in_match: bool) -> Span:
    return rule.match.condition_span if in_match and rule.match.condition_span is not None else rule.span


def _walks(loop: Loop) -> str:
    what = f"`{loop.name}`" if loop.name else "a computed list"
    return f"{loop.elements:,} elements of {what} at {loop.each:,} steps each: {loop.total:,}"
