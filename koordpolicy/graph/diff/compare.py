"""Two graphs side by side: which decisions differ, who edited them, and an input that shows it."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.describe.answer import value_type
from koordpolicy.graph.describe.decision import condition_of, unit_of
from koordpolicy.graph.describe.decision import value_text as rule_text
from koordpolicy.graph.diff.changes import (
    DecisionChange,
    Difference,
    Edit,
    Effect,
    Example,
    How,
    Moves,
    Open,
    Told,
)
from koordpolicy.graph.diff.deciding import Said, deciding, plain_fact, records_saying, shown_fact
from koordpolicy.graph.diff.documents import changed_documents, changed_settings, renamed_documents
from koordpolicy.graph.diff.moves import moves_of
from koordpolicy.graph.diff.ways import Way, way_between, way_of
from koordpolicy.graph.diff.words import value_text
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.proof import Counterexample, Differ, GaveUp, ProofBudget, Proved, Verdict, decide
from koordpolicy.graph.proof.everyday import MOST_OF, beyond, is_ordinary, within_reason
from koordpolicy.graph.proof.examples import texts_named_by
from koordpolicy.graph.proof.inputs import Input, inputs, overlaid
from koordpolicy.graph.proof.reads import differing, reads_of
from koordpolicy.graph.proof.situations import Situation
from koordpolicy.graph.proof.solve import Named, ordinary
from koordpolicy.graph.reads import MISSING, ShownFact, fact_type, shown_facts, shown_value
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.selectors import in_words
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError, MissingFact
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.types import BOOL, INT
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.kinds import slot_values

_Name = tuple[str, str]
"""A rule of a decision by its layer and document."""

BUDGET: Final = ProofBudget()

FOUND: Final = Situation("", "", {})
"""Where an input was found rather than thought of: nothing is said of it but its facts."""


def compare(
    old: RuleGraph,
    new: RuleGraph,
    budget: ProofBudget = BUDGET,
    moment: Timestamp | None = None,
    compared: tuple[tuple[RuleGraph, RuleGraph], ...] = (),
) -> Difference:
    """What differs. Every example was asked of both graphs; the same graphs give the same result.

    `budget` is what may be spent on one decision whose difference everyday inputs do not show. Examples take place at
    `moment` unless a difference is at another one. Decisions whose expressions are those of a pair in `compared` are
    passed over: of them all is known.
    """
    names = sorted({str(key) for key in (*old.decisions, *new.decisions)})
    renamed = renamed_documents(old.units, new.units)
    how = _How(known_texts(old, new), budget, None if moment is None else moment.ns)
    pairs = {
        name: pair
        for name in names
        if (pair := _Pair.of(old, new, name, dict(renamed), how)).differs
        and not any(pair.decides_as(*other) for other in compared)
    }
    answers = _verdicts(pairs)
    edited = {
        name: pair.edits()
        for name, pair in pairs.items()
        if pair.edited and isinstance(answers[name], Counterexample)
    }
    affected = [
        name for name, pair in pairs.items() if not pair.edited and isinstance(answers[name], Counterexample)
    ]
    # What changes with several parameters is told with the first of them.
    behind = {name: min(pairs[name].parameters() & edited.keys(), default="") for name in affected}
    effects = {name: pairs[name].shown(pairs[why].selecting() if why else ()) for name, why in behind.items()}
    cause = _cause(old, new) or "what it reads"
    decisions = [
        DecisionChange(
            name,
            pairs[name].decision.meaning,
            found,
            tuple(Effect(one, *effects[one]) for one, why in behind.items() if why == name),
        )
        for name, found in edited.items()
    ]
    decisions.sort(key=lambda one: (one.edits[0].span.file, one.edits[0].span.start.line, one.decision))
    told = {edit.document for one in decisions for edit in one.edits}
    decisions += [
        DecisionChange(name, pairs[name].decision.meaning, (), (Effect(name, *effects[name]),), cause)
        for name, why in behind.items()
        if not why
    ]
    gone = {name for pair in renamed for name in pair}
    return Difference(
        old.digest,
        new.digest,
        tuple(decisions),
        changed_settings(old.units, new.units),
        tuple(
            one
            for one in changed_documents(old.units, new.units)
            if one.document not in told and one.document not in gone
        ),
        tuple(name for name, answer in answers.items() if isinstance(answer, Proved)),
        tuple(
            Open(name, answer.why, pairs[name].edits() if pairs[name].edited else ())
            for name, answer in answers.items()
            if isinstance(answer, GaveUp)
        ),
        renamed,
    )


def _verdicts(pairs: Mapping[str, "_Pair"]) -> dict[str, Verdict]:
    """What is known of each decision. Inputs on which one differs are tried on those that everyday inputs do not show."""
    seen = [pair.witness() for pair in pairs.values() if pair.differs_everyday]
    hidden = [pair for pair in pairs.values() if not pair.differs_everyday]
    for pair in hidden:
        pair.tries(seen)
    answers = {name: pair.verdict() for name, pair in pairs.items()}
    found = {pair.name: pair.witness() for pair in hidden if isinstance(answers[pair.name], Counterexample)}
    for pair in hidden:
        if not isinstance(answers[pair.name], Proved):
            pair.tries(records for name, records in found.items() if name != pair.name)
            answers[pair.name] = pair.verdict()
    return answers


def known_texts(*graphs: RuleGraph) -> Named:
    """The names of classes and bands in these graphs, where facts have them."""
    return texts_named_by(*(graph.catalogue for graph in graphs))


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
class _How:
    """What all decisions are compared with: texts that facts have, what may be spent, the moment of examples."""

    named: Named
    budget: ProofBudget
    moment: int | None


class _Pair:
    """One decision in both graphs. `renamed` leads from the old name of a document to its new one."""

    def __init__(
        self,
        old: RuleGraph,
        new: RuleGraph,
        decision: Decision,
        renamed: Mapping[str, str],
        how: _How,
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
        how: _How,
    ) -> "_Pair":
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
        return _meanings(self._rules(self.old, self._renamed)) != _meanings(self._rules(self.new))

    def verdict(self) -> Verdict:
        """Whether the two decide alike."""
        if self._verdict is None:
            differing = self._differing()
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
        return bool(self._differing())

    def witness(self) -> Mapping[str, Any]:
        """The most telling input on which the answers differ."""
        return min(self._differing(), key=lambda one: one.rank).made.records

    def tries(self, witnesses: Iterable[Mapping[str, Any]]) -> None:
        """Keep those of other decisions' inputs on which this one differs too, and everyday ones with their facts."""
        for records in witnesses:
            for made in (*overlaid(records, self._how.moment), Input(FOUND, dict(records))):
                tried = self._asked(made)
                if not tried.old.same(tried.new):
                    self._differing().append(tried)
                    self._verdict = Counterexample(self.witness())

    def _goal(self, of: _Name | None = None) -> Differ:
        """An input on which the answers differ; with `of`, one that this rule decides."""
        given = None if of is None else _decides(self.old, self.new, self.name, of)

        def holds(records: Mapping[str, Any]) -> bool:
            return of in (_rule_name(self.old, self.name, records), _rule_name(self.new, self.name, records))

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
            elif _meaning(earlier) != _meaning(rule):
                found.append(self._edit(How.CHANGED, name, earlier, rule))
        found += [
            self._edit(How.REMOVED, name, rule, None) for name, rule in before.items() if name not in after
        ]
        return tuple(found)

    def _edit(self, how: How, name: _Name, old: Rule | None, new: Rule | None) -> Edit:
        rule, graph = (new, self.new) if new is not None else (old, self.old)
        assert rule is not None
        was = None
        if old is not None and new is not None and _scope(self.old, old) != _scope(self.new, new):
            was = _scope(self.old, old)
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
            _where(graph, rule),
            None if old is None else rule_text(old),
            None if new is None else rule_text(new),
            rule.span,
            example,
            gave_up,
            was,
            also,
        )

    def _where_only(self, name: _Name, before: bool) -> Example | None:
        """The most telling input that a rule decides in one graph alone: in the old one, or the new one."""
        fitting = [
            one
            for one in self._differing()
            if (_name(one.old_rule) == name) is before and (_name(one.new_rule) == name) is not before
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

    def _example_of(self, name: _Name) -> tuple[Example | None, str]:
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

    def _other_way(self, example: Example, of: _Name | None = None) -> Example | None:
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
            reads = reads_of((*differing(goal.left, goal.right), *goal.expressions))
            records = ordinary(going, reads, self._how.named, self._how.moment)
            best = None if records is None else self._asked(Input(FOUND, dict(records)))
        return None if best is None else self._shown(best)

    def _goes(self, way: Way, goal: Differ, records: Mapping[str, Any]) -> bool:
        """Whether an input meets a goal, the answer going this way."""
        try:
            answers = goal.old(records), goal.new(records)
        except CelError:
            return False
        return way_between(*answers) is way and goal.met(records)

    def _decided_by(self, of: _Name | None) -> list[_Tried]:
        """The inputs with unlike answers that a rule decides in one graph or the other; all without one."""
        return [
            one for one in self._differing() if of is None or of in (_name(one.old_rule), _name(one.new_rule))
        ]

    def shown(self, selecting: tuple[tuple[str, str], ...] = ()) -> tuple[Example, Example | None]:
        """The most telling input of a decision that differs, and one the other way. `selecting` are facts that they are
        to tell as well.
        """
        self._selecting = selecting
        example = self.example()
        assert example is not None
        return example, self._other_way(example)

    def example(self, of: _Name | None = None) -> Example | None:
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
        telling = {f"{root}.{path}": _fact(best.made.records, root, path) for root, path in asked if path}
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
            for one in self._differing()
            if not one.made.bent
            and (one.old_rule, one.new_rule) == rules
            and all(_fact(one.made.records, *_place(name)) == fact for name, fact in telling.items())
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

    def _differing(self) -> list[_Tried]:
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
    ) -> dict[_Name, Rule]:
        rules = graph.decision(self.name).rules if self.name in graph else ()
        return {(rule.layer, renamed.get(rule.document, rule.document)): rule for rule in rules}


def _meanings(rules: Mapping[_Name, Rule]) -> dict[_Name, object]:
    return {name: _meaning(rule) for name, rule in rules.items()}


def _meaning(rule: Rule) -> object:
    """What a rule says and when; where it stands and how many packs lie below it do not count."""
    rank = rule.rank
    terms = None if rule.terms is None else (rule.terms.begins, rule.terms.ends)
    return rule.value, rule.match.test, rank.precedence, rank.narrowness, terms


def _rule_name(graph: RuleGraph, name: str, records: Mapping[str, Any]) -> _Name | None:
    """The rule that decides in a graph."""
    if name not in graph:
        return None
    roots = graph.decision(name).roots
    return _name(graph.deciding_rule(name, *(records.get(root, {}) for root in roots)))


def _decides(old: RuleGraph, new: RuleGraph, name: str, rule: _Name) -> ir.Node:
    """Whether a rule decides in one graph or the other, as an expression."""
    found: list[ir.Node] = []
    for graph in (old, new):
        rules = graph.decision(name).rules if name in graph else ()
        found += [
            ir.Call(BOOL, "_==_", (graph.index(name), constant(INT, at)))
            for at, one in enumerate(rules)
            if _name(one) == rule
        ]
    return found[0] if len(found) == 1 else ir.Or(BOOL, tuple(found)) if found else constant(BOOL, True)


def _name(rule: Rule | None) -> _Name | None:
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


def _fact(records: Mapping[str, Any], root: str, path: str) -> ShownFact:
    """A fact of an input, whether or not anything read it."""
    record = records.get(root)
    name = f"{root}.{path}"
    if not isinstance(record, Mapping) or path not in record:
        return ShownFact(name, MISSING, present=False)
    return ShownFact(name, shown_value(fact_type(name), record[path]), present=True)


def _place(name: str) -> tuple[str, str]:
    """Root and path of a fact."""
    root, _, path = name.partition(".")
    return root, path


def _where(graph: RuleGraph, rule: Rule) -> str:
    """What a rule applies to, in words, and by whose exception; "" for everything."""
    scope = _scope(graph, rule)
    terms = "" if rule.terms is None else f"by exception of {rule.terms.owner} until {rule.terms.until}"
    return ", ".join(part for part in (scope, terms) if part)


def _scope(graph: RuleGraph, rule: Rule) -> str:
    """What a rule applies to, in words; "" for everything."""
    parts = [in_words(rule.match.requirements) or ""]
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
