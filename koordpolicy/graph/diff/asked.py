"""What one graph says of an input: its answer, the rule behind it, and where rules apply."""

from collections.abc import Iterator, Mapping
from typing import Any

from koordpolicy.graph.describe.answer import value_type
from koordpolicy.graph.describe.decision import condition_of, unit_of
from koordpolicy.graph.diff.changes import (
    Told,
)
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.reads import MISSING, ShownFact, fact_type, shown_value
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.selectors import in_words
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError, MissingFact
from koordpolicy.language.cel.types import BOOL, INT
from koordpolicy.language.kinds import slot_values

RuleName = tuple[str, str]
"""A rule of a decision by its layer and document."""


def meanings_of(rules: Mapping[RuleName, Rule]) -> dict[RuleName, object]:
    """What each rule says and when."""
    return {name: meaning_of(rule) for name, rule in rules.items()}


def meaning_of(rule: Rule) -> object:
    """What a rule says and when; where it stands and how many packs lie below it do not count."""
    rank = rule.rank
    terms = None if rule.terms is None else (rule.terms.begins, rule.terms.ends)
    return rule.value, rule.match.test, rank.precedence, rank.narrowness, terms


def rule_name(graph: RuleGraph, name: str, records: Mapping[str, Any]) -> RuleName | None:
    """The rule that decides in a graph."""
    if name not in graph:
        return None
    roots = graph.decision(name).roots
    return name_of(graph.deciding_rule(name, *(records.get(root, {}) for root in roots)))


def decides(old: RuleGraph, new: RuleGraph, name: str, rule: RuleName) -> ir.Node:
    """Whether a rule decides in one graph or the other, as an expression."""
    found: list[ir.Node] = []
    for graph in (old, new):
        rules = graph.decision(name).rules if name in graph else ()
        found += [
            ir.Call(BOOL, "_==_", (graph.index(name), constant(INT, at)))
            for at, one in enumerate(rules)
            if name_of(one) == rule
        ]
    return found[0] if len(found) == 1 else ir.Or(BOOL, tuple(found)) if found else constant(BOOL, True)


def name_of(rule: Rule | None) -> RuleName | None:
    """Layer and document of a rule."""
    return None if rule is None else (rule.layer, rule.document)


def told(graph: RuleGraph, asked: Decision, records: Mapping[str, Any]) -> tuple[Told, Rule | None]:
    """A graph's answer, and the rule that gave it. Where a graph lacks the decision, its default holds."""
    name = str(asked.key)
    if name not in graph:
        default = asked.default
        return Told(asked.type, default.value if isinstance(default, ir.Const) else None), None
    decision = graph.decision(name)
    given = [records.get(root, {}) for root in decision.roots]
    rule = graph.deciding_rule(name, *given)
    type = value_type(decision, rule)
    try:
        return Told(type, graph.program(name).call(*given)), rule
    except CelError as error:
        return Told(type, None, error.message, isinstance(error, MissingFact)), rule


def fact_within(records: Mapping[str, Any], root: str, path: str) -> ShownFact:
    """A fact of an input, whether or not anything read it."""
    record = records.get(root)
    name = f"{root}.{path}"
    if not isinstance(record, Mapping) or path not in record:
        return ShownFact(name, MISSING, present=False)
    return ShownFact(name, shown_value(fact_type(name), record[path]), present=True)


def place_of(name: str) -> tuple[str, str]:
    """Root and path of a fact."""
    root, _, path = name.partition(".")
    return root, path


def where_of(graph: RuleGraph, rule: Rule) -> str:
    """What a rule applies to, in words, and by whose exception; "" for everything."""
    scope = scope_of(graph, rule)
    terms = "" if rule.terms is None else f"by exception of {rule.terms.owner} until {rule.terms.until}"
    return ", ".join(part for part in (scope, terms) if part)


def scope_of(graph: RuleGraph, rule: Rule) -> str:
    """What a rule applies to, in words; "" for everything."""
    unit = unit_of(graph, rule)
    whole = graph.matches.get(unit) if unit is not None else None
    # A slot that holds for all that its subject applies to has no selectors of its own, but those of the document.
    requirements = rule.match.requirements or (whole.requirements if whole is not None else ())
    parts = [in_words(requirements) or ""]
    conditions = [condition_of(graph, rule), *_entry_conditions(graph, rule)]
    parts += [f"if {condition}" for condition in conditions if condition is not None]
    return ", ".join(part for part in parts if part)


def _entry_conditions(graph: RuleGraph, rule: Rule) -> Iterator[str]:
    """The conditions of the list entries that a rule stands in, such as a filter's own match."""
    unit = unit_of(graph, rule)
    for slot in () if unit is None else slot_values(unit.spec):
        if slot.field == rule.key.field:
            for path in slot.conditions:
                found: Any = unit.document.data if unit is not None else None
                for step in path:
                    found = found[step]
                yield " ".join(str(found).split())
