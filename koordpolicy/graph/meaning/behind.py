"""Who is to blame for an answer that is tried out: the rules of the highest layer that made it."""

from koordpolicy.graph.answer import Answer
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.state import State


def highest_behind(state: State, graph: RuleGraph, answer: Answer) -> list[Rule]:
    """The rules of the highest layer among those behind an answer, formulas before parameters."""
    layers = {layer.name: at for at, layer in enumerate(state.every_layer)}
    found: list[Rule] = []
    for ref in answer.provenance.rules:
        rules = graph.decision(ref.decision).rules
        rule = next((one for one in rules if one.span == ref.span and one.document == ref.document), None)
        found += [] if rule is None else [rule]
    highest = max((layers.get(rule.layer, 0) for rule in found), default=0)
    return [rule for rule in found if layers.get(rule.layer, 0) == highest]
