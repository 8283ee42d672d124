"""Decisions as plain data, for programs: the same as the words for people say."""

from koordpolicy.graph.describe.decision import condition_of
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.notation import written
from koordpolicy.graph.rules import DecisionKey, Rule
from koordpolicy.graph.selectors import in_words
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.kinds import type_name


def decision_data(graph: RuleGraph, key: DecisionKey) -> dict[str, object]:
    """A decision with its rules, the winning one first; values are written as in policies."""
    decision = graph.decisions[key]
    default = decision.default
    return {
        "decision": str(key),
        "meaning": decision.meaning,
        "type": type_name(decision.type),
        "combine": str(decision.combine),
        "askedBy": sorted(decision.components),
        "mayRead": list(decision.roots),
        "reads": [
            f"{root}.{path}" if path else root for root, path in sorted(facts_of(graph.expression(str(key))))
        ],
        "default": written(decision.type, default.value) if isinstance(default, ir.Const) else None,
        "rules": [_rule(graph, rule) for rule in decision.rules],
    }


def _rule(graph: RuleGraph, rule: Rule) -> dict[str, object]:
    constant = isinstance(rule.value, ir.Const)
    terms = rule.terms
    return {
        "document": rule.document,
        "layer": rule.layer,
        "file": rule.span.file,
        "line": rule.span.start.line,
        "column": rule.span.start.column,
        "precedence": rule.rank.precedence,
        "for": in_words(rule.match.requirements),
        "if": condition_of(graph, rule),
        "value": written(rule.value.type, rule.value.value) if isinstance(rule.value, ir.Const) else None,
        "expression": None if constant else rule.text,
        "parameters": sorted(rule.parameters),
        "exception": None
        if terms is None
        else {"owner": terms.owner, "reason": terms.reason, "expires": terms.until},
    }
