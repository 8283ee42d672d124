"""How a decision came out on given facts, and why."""

from collections.abc import Iterator, Mapping
from typing import Any

from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.describe.decision import applies, unit_of, variables_used
from koordpolicy.graph.describe.layout import expression, labelled, place, rows
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.notation import show
from koordpolicy.graph.reads import shown_facts, shown_value
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.types import DYN, Type


def describe_answer(
    graph: RuleGraph,
    name: str,
    records: Mapping[str, Any],
    unsaid: frozenset[str] = frozenset(),
    width: int = 80,
) -> str:
    """The value, the rule that decided with its parameters, those passed over, and the facts.

    `records` are the roots by name; `unsaid` are facts, as `root.path`, that have their values only because
    nobody said them. Raises `UnknownDecision`.
    """
    return "\n".join(_lines(graph, graph.decision(name), records, unsaid, width)) + "\n"


def _lines(
    graph: RuleGraph, decision: Decision, records: Mapping[str, Any], unsaid: frozenset[str], width: int
) -> Iterator[str]:
    name = str(decision.key)
    answer = graph.ask(name, **records)
    rule = graph.deciding_rule(name, *(records.get(root, {}) for root in decision.roots))
    type = value_type(decision, rule)
    if answer.error is not None:
        yield f"{name} fails: {answer.error.message}"
    else:
        yield f"{name} = {show(type, answer.value)}"
    passed = decision.rules if rule is None else decision.rules[: decision.rules.index(rule)]
    yield ""
    if rule is not None:
        yield f"{'decided by':<14}{rule.document} of {rule.layer}"
        yield f"{'':14}{place(rule.span)}"
        yield from applies(graph, rule, width)
        yield from expression(rule.text, width, 14)
        yield from _variables(graph, rule, records, width)
        yield from _parameters(graph, rule, records, width)
    elif answer.error is None:
        yield f"{'decided by':<14}no rule; the default holds"
    for other in passed:
        yield ""
        yield f"{'passed over':<14}{other.document} of {other.layer}"
        yield f"{'':14}{place(other.span)}"
        yield from applies(graph, other, width)
    facts = shown_facts(answer, decision.roots)
    if facts:
        yield ""
        yield "facts"
        yield from rows(
            (
                (f"{fact.path} = {fact.value}", "by default" if fact.present and fact.path in unsaid else "")
                for fact in facts
            ),
            width,
        )
    yield ""
    yield f"{'revision':<14}{answer.provenance.digest[:12]}"


def _variables(graph: RuleGraph, rule: Rule, records: Mapping[str, Any], width: int) -> Iterator[str]:
    """What the document's variables came to on the way."""
    for name, text in variable_values(graph, rule, records):
        yield from labelled("where", f"variables.{name} = {text}", width, 3, 14)


def variable_values(graph: RuleGraph, rule: Rule, records: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The variables that a rule's value uses, each with its value as text, or what went wrong."""
    for name in variables_used(unit_of(graph, rule), rule.text):
        node = rule.variables.get(name)
        if node is None:
            continue
        try:
            value = graph.variable(rule, name, **records)
        except CelError as error:
            yield name, f"an error: {error.message}"
        else:
            yield name, shown_value(node.type, value)


def value_type(decision: Decision, rule: Rule | None) -> Type:
    """The type to show a value in: the rule's own, else that of the decision."""
    return rule.value.type if rule is not None and rule.value.type != DYN else decision.type


def _parameters(graph: RuleGraph, rule: Rule, records: Mapping[str, Any], width: int) -> Iterator[str]:
    """Each parameter the rule uses with the value that holds here, and who says so."""
    for name in sorted(rule.parameters):
        key = parameter_key(rule.key, name)
        decision = graph.decisions.get(key)
        if decision is None:
            continue
        answer = graph.ask(str(key), **records)
        inner = graph.deciding_rule(str(key), *(records.get(root, {}) for root in decision.roots))
        value = show(decision.type, answer.value) if answer.error is None else answer.error.message
        yield from labelled("with", f"{name} = {value}", width, 3, 14)
        if inner is not None:
            yield f"{'':16}{place(inner.span)}"
