"""Two graphs side by side: which decisions differ, who edited them, and an input that shows it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.describe.answer import value_type
from koordpolicy.graph.describe.decision import condition_of, unit_of, value_text
from koordpolicy.graph.diff.changes import DecisionChange, Difference, Edit, Effect, Example, How, Told
from koordpolicy.graph.diff.documents import changed_documents, changed_settings
from koordpolicy.graph.diff.inputs import Input, inputs
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.reads import ShownFact, shown_facts
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.selectors import in_words
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.kinds import slot_values

_Name = tuple[str, str]
"""A rule of a decision by its layer and document."""


def compare(old: RuleGraph, new: RuleGraph) -> Difference:
    """What differs. Every example was asked of both graphs; the same graphs give the same result."""
    names = sorted({str(key) for key in (*old.decisions, *new.decisions)})
    pairs = {name: pair for name in names if (pair := _Pair.of(old, new, name)).differs}
    edited = {name: pair.edits() for name, pair in pairs.items() if pair.edited}
    effects = {name: pair.example() for name, pair in pairs.items() if not pair.edited}
    shown = {name: example for name, example in effects.items() if example is not None}
    # What changes with several parameters is told with the first of them.
    behind = {name: min(pairs[name].parameters() & edited.keys(), default="") for name in shown}
    cause = _cause(old, new) or "what it reads"
    decisions = [
        DecisionChange(
            name,
            pairs[name].decision.meaning,
            found,
            tuple(Effect(one, shown[one]) for one, why in behind.items() if why == name),
        )
        for name, found in edited.items()
    ]
    decisions.sort(key=lambda one: (one.edits[0].span.file, one.edits[0].span.start.line, one.decision))
    told = {edit.document for one in decisions for edit in one.edits}
    decisions += [
        DecisionChange(
            name,
            pairs[name].decision.meaning,
            (),
            (Effect(name, shown[name]),),
            cause,
        )
        for name, why in behind.items()
        if not why
    ]
    return Difference(
        old.digest,
        new.digest,
        tuple(decisions),
        changed_settings(old.units, new.units),
        tuple(one for one in changed_documents(old.units, new.units) if one.document not in told),
        tuple(name for name, example in effects.items() if example is None),
    )


def _cause(old: RuleGraph, new: RuleGraph) -> str:
    """The documents behind changes of what everybody reads: libraries, classes, bands, the bundle's packs."""
    kinds = ("Library", "QoSClass", "PriorityBand", "PolicyBundle")
    before, after = (
        {(unit.layer_name, unit.id): unit.document.data for unit in graph.units if unit.kind.name in kinds}
        for graph in (old, new)
    )
    changed = sorted({name for _, name in before.keys() ^ after.keys()})
    changed += sorted(
        key[1] for key in before.keys() & after.keys() if before[key].get("spec") != after[key].get("spec")
    )
    return ", ".join(changed)


@dataclass(frozen=True, slots=True)
class _Tried:
    """An input with both answers, and the rules that gave them."""

    made: Input
    old: Told
    new: Told
    old_rule: Rule | None
    new_rule: Rule | None

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Examples without errors and negative amounts say more, and those closest to everyday life."""
        both = (self.old, self.new)
        return (
            any(told.error is not None for told in both),
            any(isinstance(told.value, int | float) and told.value < 0 for told in both),
            self.made.bent,
        )


class _Pair:
    """One decision in both graphs."""

    def __init__(self, old: RuleGraph, new: RuleGraph, name: str, decision: Decision) -> None:
        self.old, self.new = old, new
        self.name = name
        self.decision = decision
        self._tried: list[_Tried] | None = None

    @classmethod
    def of(cls, old: RuleGraph, new: RuleGraph, name: str) -> "_Pair":
        return cls(old, new, name, (new if name in new else old).decision(name))

    @property
    def differs(self) -> bool:
        """Whether the two would be evaluated differently at all, or say it in other rules."""
        return self._expression(self.old) != self._expression(self.new) or self.edited

    @property
    def edited(self) -> bool:
        """Whether its own rules differ, whatever they read."""
        return _meanings(self._rules(self.old)) != _meanings(self._rules(self.new))

    def edits(self) -> tuple[Edit, ...]:
        """What became of each rule, the winning ones first."""
        before, after = self._rules(self.old), self._rules(self.new)
        found = []
        for name, rule in after.items():
            earlier = before.get(name)
            if earlier is None:
                found.append(self._edit(How.ADDED, name, None, rule))
            elif _meaning(earlier) != _meaning(rule):
                found.append(self._edit(How.CHANGED, name, earlier, rule))
        found += [
            self._edit(How.REMOVED, name, rule, None) for name, rule in before.items() if name not in after
        ]
        return tuple(found)

    def _edit(self, how: How, name: _Name, old: Rule | None, new: Rule | None) -> Edit:
        rule, graph = (new, self.new) if new is not None else (old, self.old)
        assert rule is not None
        example = self.example(name)
        return Edit(
            how,
            rule.document,
            rule.layer,
            _where(graph, rule),
            None if old is None else value_text(old),
            None if new is None else value_text(new),
            rule.span,
            example,
        )

    def example(self, of: _Name | None = None) -> Example | None:
        """The most telling input that the graphs answer differently; with `of`, one that this rule decides."""
        fitting = [
            one for one in self._differing() if of is None or of in (_name(one.old_rule), _name(one.new_rule))
        ]
        best = min(fitting, key=lambda one: one.rank, default=None)
        if best is None:
            return None
        facts = self._facts(self.new, best.made.records) or self._facts(self.old, best.made.records)
        roots = {fact.path.partition(".")[0] for fact in facts}
        constant = all(
            rule is None or isinstance(rule.value, ir.Const) for rule in (best.old_rule, best.new_rule)
        )
        return Example(best.made.phrase(roots), facts, best.old, best.new, constant)

    def _facts(self, graph: RuleGraph, records: Mapping[str, Any]) -> tuple[ShownFact, ...]:
        """What the graph's answer depends on."""
        if self.name not in graph:
            return ()
        return shown_facts(graph.ask(self.name, **records), graph.decision(self.name).roots)

    def _differing(self) -> list[_Tried]:
        if self._tried is None:
            expressions = (self._expression(self.old), self._expression(self.new))
            self._tried = []
            for made in inputs(*expressions):
                old, old_rule = _told(self.old, self.decision, made.records)
                new, new_rule = _told(self.new, self.decision, made.records)
                if not old.same(new):
                    self._tried.append(_Tried(made, old, new, old_rule, new_rule))
        return self._tried

    def parameters(self) -> frozenset[str]:
        """The names of all parameter decisions that either side depends on."""
        found: set[DecisionKey] = set()
        waiting = [(graph, rule) for graph in (self.old, self.new) for rule in self._rules(graph).values()]
        while waiting:
            graph, rule = waiting.pop()
            for name in rule.parameters:
                key = parameter_key(rule.key, name)
                if key not in found:
                    found.add(key)
                    known = graph.decisions.get(key)
                    waiting += [(graph, inner) for inner in (known.rules if known is not None else ())]
        return frozenset(map(str, found))

    def _expression(self, graph: RuleGraph) -> ir.Node:
        return graph.expression(self.name) if self.name in graph else self.decision.default

    def _rules(self, graph: RuleGraph) -> dict[_Name, Rule]:
        rules = graph.decision(self.name).rules if self.name in graph else ()
        return {(rule.layer, rule.document): rule for rule in rules}


def _meanings(rules: Mapping[_Name, Rule]) -> dict[_Name, object]:
    return {name: _meaning(rule) for name, rule in rules.items()}


def _meaning(rule: Rule) -> object:
    """What a rule says and when; where it stands and how many packs lie below it do not count."""
    rank = rule.rank
    terms = None if rule.terms is None else (rule.terms.begins, rule.terms.ends)
    return rule.value, rule.match.test, rank.precedence, rank.narrowness, terms


def _name(rule: Rule | None) -> _Name | None:
    return None if rule is None else (rule.layer, rule.document)


def _told(graph: RuleGraph, asked: Decision, records: Mapping[str, Any]) -> tuple[Told, Rule | None]:
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
        return Told(type, None, error.message), rule


def answers(
    old: RuleGraph, new: RuleGraph, name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[Told, Told]:
    """What both graphs answer, each on its own records of the same thing."""
    asked = (new if name in new else old).decision(name)
    return _told(old, asked, before)[0], _told(new, asked, after)[0]


def _where(graph: RuleGraph, rule: Rule) -> str:
    """What a rule applies to, in words; "" for everything."""
    parts = [in_words(rule.match.requirements) or ""]
    conditions = [condition_of(graph, rule), *_entry_conditions(graph, rule)]
    parts += [f"if {condition}" for condition in conditions if condition is not None]
    if rule.terms is not None:
        parts.append(f"by exception of {rule.terms.owner} until {rule.terms.until}")
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
