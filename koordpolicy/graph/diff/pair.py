"""One decision in two graphs: whether they decide alike, and inputs on which they do not."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.describe.decision import value_text as rule_text
from koordpolicy.graph.diff.asked import (
    RuleName,
    decides,
    fact_within,
    meaning_of,
    meanings_of,
    name_of,
    place_of,
    rule_name,
    scope_of,
    told,
    where_of,
)
from koordpolicy.graph.diff.changes import (
    Edit,
    Example,
    How,
    Moves,
    Told,
)
from koordpolicy.graph.diff.deciding import Said, deciding, plain_fact, records_saying, shown_fact
from koordpolicy.graph.diff.moves import moves_of
from koordpolicy.graph.diff.ways import Heading, way_between, way_of
from koordpolicy.graph.diff.words import value_text
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.proof import Counterexample, Differ, GaveUp, ProofBudget, Proved, Verdict, decide
from koordpolicy.graph.proof.everyday import MOST_OF, beyond, is_ordinary, within_reason
from koordpolicy.graph.proof.inputs import Input, inputs, overlaid
from koordpolicy.graph.proof.reads import differing_parts, reads_of
from koordpolicy.graph.proof.situations import Situation
from koordpolicy.graph.proof.solve import Named, ordinary
from koordpolicy.graph.reads import ShownFact, shown_facts
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of

FOUND: Final = Situation("", "", {})
"""Where an input was found rather than thought of: nothing is said of it but its facts."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """An input with both answers, and the rules that gave them."""

    made: Input
    old: Told
    new: Told
    old_rule: Rule | None
    new_rule: Rule | None

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """Examples without errors and negative amounts say more, and those closest to everyday life."""
        both = (self.old, self.new)
        return (
            any(told.error is not None for told in both),
            self.made.situation is FOUND,
            any(isinstance(told.value, int | float) and told.value < 0 for told in both),
            self.made.bent,
        )


@dataclass(frozen=True, slots=True)
class Comparing:
    """What all decisions are compared with: texts that facts have, what may be spent, the moment of examples."""

    named: Named
    budget: ProofBudget
    moment: int | None


class DecisionPair:
    """One decision in both graphs. `renamed` leads from the old name of a document to its new one."""

    def __init__(
        self,
        old: RuleGraph,
        new: RuleGraph,
        decision: Decision,
        renamed: Mapping[str, str],
        how: Comparing,
    ) -> None:
        self.old, self.new = old, new
        self.name = str(decision.key)
        self.decision = decision
        self._renamed = renamed
        self._how = how
        self._selecting: tuple[tuple[str, str], ...] | None = None
        self._tried: list[_Tried] | None = None
        self._verdict: Verdict | None = None
        self._ordinary: Verdict | None = None

    @classmethod
    def of(
        cls,
        old: RuleGraph,
        new: RuleGraph,
        name: str,
        renamed: Mapping[str, str],
        how: Comparing,
    ) -> "DecisionPair":
        return cls(old, new, (new if name in new else old).decision(name), renamed, how)

    @property
    def differs(self) -> bool:
        """Whether the two would be evaluated differently at all, or say it in other rules."""
        return self._expression(self.old) != self._expression(self.new) or self.edited

    def decides_as(self, old: RuleGraph, new: RuleGraph) -> bool:
        """Whether two other graphs have these very expressions."""
        pairs = ((self.old, old), (self.new, new))
        return all(self._expression(one) == self._expression(other) for one, other in pairs)

    @property
    def edited(self) -> bool:
        """Whether its own rules differ, whatever they read."""
        return meanings_of(self._rules(self.old, self._renamed)) != meanings_of(self._rules(self.new))

    def verdict(self) -> Verdict:
        """Whether the two decide alike."""
        if self._verdict is None:
            differing = self._differing_inputs()
            if differing:
                self._verdict = Counterexample(differing[0].made.records)
            else:
                self._verdict = decide(
                    self._goal(), self._how.named, self._how.budget, everyday=False, moment=self._how.moment
                )
                if isinstance(self._verdict, Counterexample):
                    self._verdict = self._made_ordinary(self._verdict)
                    differing.append(self._asked(Input(FOUND, dict(self._verdict.records))))
        return self._verdict

    def _made_ordinary(self, found: Counterexample) -> Counterexample:
        """An input with amounts as clusters have them, where one is found; the one there is otherwise."""
        if is_ordinary(found.records, reads_of(self._goal().expressions)):
            return found
        known = self._within_reason()
        return known if isinstance(known, Counterexample) else found

    def _within_reason(self) -> Verdict:
        """Whether the two decide alike on amounts as clusters have them."""
        if self._ordinary is None:
            goal = self._goal()
            reads = reads_of(goal.expressions)
            within = replace(
                goal, given=within_reason(*goal.expressions), holds=partial(is_ordinary, reads=reads)
            )
            budget = self._how.budget
            less = replace(budget, inputs=budget.inputs // 4, work=budget.work // 4)
            self._ordinary = decide(within, self._how.named, less, everyday=False, moment=self._how.moment)
        return self._ordinary

    @property
    def differs_everyday(self) -> bool:
        """Whether everyday inputs show a difference."""
        return bool(self._differing_inputs())

    def witness(self) -> Mapping[str, Any]:
        """The most telling input on which the answers differ."""
        return min(self._differing_inputs(), key=lambda one: one.rank).made.records

    def tries(self, witnesses: Iterable[Mapping[str, Any]]) -> None:
        """Keep those of other decisions' inputs on which this one differs too, and everyday ones with their facts."""
        for records in witnesses:
            for made in (*overlaid(records, self._how.moment), Input(FOUND, dict(records))):
                tried = self._asked(made)
                if not tried.old.same(tried.new):
                    self._differing_inputs().append(tried)
                    self._verdict = Counterexample(self.witness())

    def _goal(self, of: RuleName | None = None) -> Differ:
        """An input on which the answers differ; with `of`, one that this rule decides."""
        given = None if of is None else decides(self.old, self.new, self.name, of)

        def holds(records: Mapping[str, Any]) -> bool:
            return of in (rule_name(self.old, self.name, records), rule_name(self.new, self.name, records))

        return Differ(
            self._expression(self.old),
            self._expression(self.new),
            partial(self._value, self.old),
            partial(self._value, self.new),
            given,
            None if of is None else holds,
        )

    def _value(self, graph: RuleGraph, records: Mapping[str, Any]) -> Any:
        """A graph's answer; raises `CelError`."""
        if self.name not in graph:
            default = self.decision.default
            return default.value if isinstance(default, ir.Const) else None
        roots = graph.decision(self.name).roots
        return graph.program(self.name).call(*(records.get(root, {}) for root in roots))

    def edits(self) -> tuple[Edit, ...]:
        """What became of each rule, the winning ones first."""
        before, after = self._rules(self.old, self._renamed), self._rules(self.new)
        found = []
        for name, rule in after.items():
            earlier = before.get(name)
            if earlier is None:
                found.append(self._edit(How.ADDED, name, None, rule))
            elif meaning_of(earlier) != meaning_of(rule):
                found.append(self._edit(How.CHANGED, name, earlier, rule))
        found += [
            self._edit(How.REMOVED, name, rule, None) for name, rule in before.items() if name not in after
        ]
        return tuple(found)

    def _edit(self, how: How, name: RuleName, old: Rule | None, new: Rule | None) -> Edit:
        rule, graph = (new, self.new) if new is not None else (old, self.old)
        assert rule is not None
        was = None
        if old is not None and new is not None and scope_of(self.old, old) != scope_of(self.new, new):
            was = scope_of(self.old, old)
        example, gave_up = self._example_of(name)
        also = None
        if was is not None and example is not None:
            lost, gained = (self._where_only(name, first) for first in (True, False))
            example = lost or gained or example
            also = gained if lost is not None else None
        if also is None and example is not None:
            also = self._other_way(example, name)
        return Edit(
            how,
            rule.document,
            rule.layer,
            where_of(graph, rule),
            None if old is None else rule_text(old),
            None if new is None else rule_text(new),
            rule.span,
            example,
            gave_up,
            was,
            also,
        )

    def _where_only(self, name: RuleName, before: bool) -> Example | None:
        """The most telling input that a rule decides in one graph alone: in the old one, or the new one."""
        fitting = [
            one
            for one in self._differing_inputs()
            if (name_of(one.old_rule) == name) is before and (name_of(one.new_rule) == name) is not before
        ]
        best = min(fitting, key=lambda one: one.rank, default=None)
        return None if best is None else self._shown(best)

    def selecting(self) -> tuple[tuple[str, str], ...]:
        """The facts, as root and path, that selectors and conditions ask for which the other graph words otherwise."""
        before, after = self._rules(self.old, self._renamed), self._rules(self.new)
        found: dict[tuple[str, str], None] = {}
        for name in before.keys() & after.keys():
            tests = [rule.match.test for rule in (before[name], after[name])]
            if tests[0] != tests[1]:
                for test in tests:
                    found |= dict.fromkeys(sorted(facts_of(test)) if test is not None else ())
        return tuple(sorted(found))

    def _example_of(self, name: RuleName) -> tuple[Example | None, str]:
        """An input that a rule decides and on which the graphs differ; else why there is none."""
        verdict = self.verdict()
        if isinstance(verdict, GaveUp):
            return None, verdict.why
        example = self.example(name)
        if example is not None or isinstance(verdict, Proved):
            return example, ""
        alone = decide(
            self._goal(name), self._how.named, self._how.budget, everyday=False, moment=self._how.moment
        )
        if isinstance(alone, Counterexample):
            return self._shown(self._asked(Input(FOUND, dict(alone.records)))), ""
        return None, alone.why if isinstance(alone, GaveUp) else ""

    def _other_way(self, example: Example, of: RuleName | None = None) -> Example | None:
        """The most telling input on which the answer goes the other way; with `of`, one that this rule decides.

        None where none was found, which proves nothing.
        """
        way = way_of(example.old, example.new)
        if way is None:
            return None
        fitting = [one for one in self._decided_by(of) if way_of(one.old, one.new) is way.back]
        best = min(fitting, key=lambda one: one.rank, default=None)
        if best is None and example.old.error is None and example.new.error is None:
            goal = self._goal(of)
            going = replace(goal, holds=partial(self._goes, way.back, goal))
            reads = reads_of((*differing_parts(goal.left, goal.right), *goal.expressions))
            records = ordinary(going, reads, self._how.named, self._how.moment)
            best = None if records is None else self._asked(Input(FOUND, dict(records)))
        return None if best is None else self._shown(best)

    def _goes(self, way: Heading, goal: Differ, records: Mapping[str, Any]) -> bool:
        """Whether an input meets a goal, the answer going this way."""
        try:
            answers = goal.old(records), goal.new(records)
        except CelError:
            return False
        return way_between(*answers) is way and goal.met(records)

    def _decided_by(self, of: RuleName | None) -> list[_Tried]:
        """The inputs with unlike answers that a rule decides in one graph or the other; all without one."""
        return [
            one
            for one in self._differing_inputs()
            if of is None or of in (name_of(one.old_rule), name_of(one.new_rule))
        ]

    def shown(self, selecting: tuple[tuple[str, str], ...] = ()) -> tuple[Example, Example | None]:
        """The most telling input of a decision that differs, and one the other way. `selecting` are facts that they are
        to tell as well.
        """
        self._selecting = selecting
        example = self.example()
        assert example is not None
        return example, self._other_way(example)

    def example(self, of: RuleName | None = None) -> Example | None:
        """The most telling input that the graphs answer differently; with `of`, one that this rule decides."""
        best = min(self._decided_by(of), key=lambda one: one.rank, default=None)
        return None if best is None else self._shown(best)

    def _shown(self, best: _Tried) -> Example:
        read = self._facts(self.new, best.made.records) or self._facts(self.old, best.made.records)
        roots = {fact.path.partition(".")[0] for fact in read}
        found = self._deciding(best, [fact.path for fact in read])
        given = found or {}
        shown = {
            f"{root}.{path}" if path else root: shown_fact((root, path), value)
            for (root, path), value in given.items()
        }
        # Those that the answer names come in its order, what else decides follows.
        facts = (
            [shown.pop(fact.path) for fact in read if fact.path in shown] if found is not None else list(read)
        )
        facts += shown.values()
        asked = self._selecting if self._selecting is not None else self.selecting()
        telling = {
            f"{root}.{path}": fact_within(best.made.records, root, path) for root, path in asked if path
        }
        facts = [*telling.values(), *(fact for fact in facts if fact.path not in telling)]
        constant = all(
            rule is None or isinstance(rule.value, ir.Const) for rule in (best.old_rule, best.new_rule)
        )
        plain = {
            f"{root}.{path}" if path else root: plain_fact((root, path), value)
            for (root, path), value in given.items()
        }
        return Example(
            best.made.phrase(roots),
            tuple(facts),
            best.old,
            best.new,
            constant,
            tuple(telling),
            plain,
            self._moves(best, roots, telling),
            self._beyond(best, given),
        )

    def _beyond(self, best: _Tried, given: Said) -> str:
        """Where alone such a difference was seen, where the example's amounts are none that a cluster has."""
        reads = reads_of((self._expression(self.old), self._expression(self.new)))
        for kind, value in beyond(records_saying(given), reads):
            if value > 0:
                most = value_text(kind, MOST_OF[kind.unit])
                match self._within_reason():
                    case Proved():
                        return f"only beyond {most}, as is proved"
                    case GaveUp():
                        return f"seen only beyond {most}"
                return ""
        return ""

    def _moves(self, best: _Tried, roots: AbstractSet[str], telling: Mapping[str, ShownFact]) -> Moves | None:
        """How far an amount moves on everyday inputs that the rules of an example decide, selected as it is."""
        rules = best.old_rule, best.new_rule
        alike = (
            (one.old.value, one.new.value)
            for one in self._differing_inputs()
            if not one.made.bent
            and (one.old_rule, one.new_rule) == rules
            and all(fact_within(one.made.records, *place_of(name)) == fact for name, fact in telling.items())
        )
        return moves_of(best.new.type, alike, roots)

    def _deciding(self, best: _Tried, read: Iterable[str]) -> Said | None:
        """The facts that both answers depend on; None where that cannot be told."""

        def keeps(records: Mapping[str, Any]) -> bool:
            old, new = (told(graph, self.decision, records)[0] for graph in (self.old, self.new))
            return old.same(best.old) and new.same(best.new)

        trees = (self._expression(self.old), self._expression(self.new))
        named = frozenset((root, path) for root, _, path in (name.partition(".") for name in read))
        return deciding(trees, best.made.records, keeps, named)

    def _facts(self, graph: RuleGraph, records: Mapping[str, Any]) -> tuple[ShownFact, ...]:
        """What the graph's answer depends on."""
        if self.name not in graph:
            return ()
        return shown_facts(graph.ask(self.name, **records), graph.decision(self.name).roots)

    def _differing_inputs(self) -> list[_Tried]:
        if self._tried is None:
            expressions = (self._expression(self.old), self._expression(self.new))
            self._tried = []
            for made in inputs(*expressions, moment=self._how.moment):
                tried = self._asked(made)
                if not tried.old.same(tried.new):
                    self._tried.append(tried)
        return self._tried

    def _asked(self, made: Input) -> _Tried:
        """Both answers to an input."""
        old, old_rule = told(self.old, self.decision, made.records)
        new, new_rule = told(self.new, self.decision, made.records)
        return _Tried(made, old, new, old_rule, new_rule)

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

    def _rules(
        self, graph: RuleGraph, renamed: Mapping[str, str] = MappingProxyType({})
    ) -> dict[RuleName, Rule]:
        rules = graph.decision(self.name).rules if self.name in graph else ()
        return {(rule.layer, renamed.get(rule.document, rule.document)): rule for rule in rules}
