"""The rule graph of one revision, and how it is asked."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.graph.answer import Answer, FactRead, Provenance, RuleRef
from koordpolicy.graph.catalogue import Classes
from koordpolicy.graph.conditions import settled
from koordpolicy.graph.decide import NO_RULE, Expressions, parameters_of
from koordpolicy.graph.lookup import Names
from koordpolicy.graph.moments import NONE, Decisions, Exceptional, digest_with, next_change
from koordpolicy.graph.rules import Decision, DecisionKey, Requirement, Rule, RuleMatch
from koordpolicy.graph.slots import decision_of
from koordpolicy.graph.state import Unit
from koordpolicy.graph.terms import Terms
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.portable import Portable, loaded
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.facts import ROOTS, Component

T = TypeVar("T")

Facts = Mapping[str, Any]
"""One record at run time: dotted path -> value. An absent path is missing data."""


class UnknownDecision(LookupError):
    """Asked for a decision that the graph does not have; the message names the nearest."""


@dataclass(frozen=True, slots=True)
class Item:
    """A named entry of a list in the spec, such as a filter; its slots are decisions of their own.

    `fields` are the entry's settings as written, by YAML name, later layers over earlier ones.
    """

    name: str
    fields: Mapping[str, Any]


class Selection:
    """What one document applies to.

    `requirements` are its label selectors, which must all hold, so that they can be indexed; `conditional` is whether
    it asks for more than those. `holds` decides the whole match; its program is made when it is first asked, since of
    many selections most never are.
    """

    def __init__(
        self,
        document: str,
        requirements: tuple[Requirement, ...],
        roots: tuple[str, ...],
        test: ir.Node | None,
        budget: int = DEFAULT_BUDGET,
        *,
        conditional: bool = True,
    ) -> None:
        self.document = document
        self.requirements = requirements
        self.conditional = conditional
        self.test = test
        """The whole match as one typed expression; None where it always holds."""
        self._roots = roots
        self._budget = budget
        self._program: RowProgram | None = None

    def holds(self, records: Mapping[str, Any]) -> bool:
        """Whether the document applies to these records, by root: not where that cannot be told (see `conditions`).

        Raises `CelError` for a limit, and where a record lacks what it never lacks.
        """
        if self.test is None:
            return True
        if self._program is None:
            self._program = compile_row(self._roots, self.test, budget=self._budget)
        return bool(self._program.call(*(records.get(root, {}) for root in self._roots)))


class RuleGraph:
    """All decisions of a revision. Immutable; programs are lowered when first asked for.

    `decisions` are those without exceptions, `exceptional` the rules of exceptions, of which those in force take
    part: see the module `moments`.
    """

    def __init__(
        self,
        digest: str,
        units: Iterable[Unit],
        classes: Classes,
        decisions: Mapping[DecisionKey, Decision],
        constants: Mapping[tuple[str, str], ir.Node],
        matches: Mapping[Unit, RuleMatch] = MappingProxyType({}),
        exceptional: Exceptional = NONE,
        budget: int = DEFAULT_BUDGET,
    ) -> None:
        self.digest = digest_with(digest, exceptional.in_force)
        self.budget = budget
        """Units that one evaluation of a decision may cost."""
        self.units = tuple(units)
        self.classes = classes
        self.decisions = exceptional.joined_to(decisions)
        self._revision = digest
        self._ordinary = decisions
        self._exceptional = exceptional
        self._moments: dict[frozenset[Terms], RuleGraph] = {exceptional.in_force: self}
        self._constants = dict(constants)
        self._matches = dict(matches)
        self._selected: dict[Unit, Selection] = {}
        self._expressions = Expressions(self.decisions, self._constants)
        self._names = {str(key): key for key in self.decisions}
        self._unset: dict[str, Decision] = {}
        self._values: dict[DecisionKey, RowProgram] = {}
        self._calls: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
        self._explained: dict[DecisionKey, RowProgram] = {}
        self._around: Callable[[str], RowProgram] | None = None
        self._made: dict[Hashable, Any] = {}

    def __contains__(self, decision: str) -> bool:
        return decision in self._names

    def decision(self, name: str) -> Decision:
        """The decision of that name; raises `UnknownDecision`."""
        key = self._names.get(name)
        if key is not None:
            return self.decisions[key]
        unset = self._unset.get(name) or self._unset_of(name)
        if unset is None:
            close = self._lookup.meant(name)
            raise UnknownDecision(f"no decision `{name}`" + (f"; did you mean `{close}`?" if close else ""))
        return self._unset.setdefault(name, unset)

    @cached_property
    def _lookup(self) -> Names:
        return Names(self.units, self.decisions.keys())

    def _unset_of(self, name: str) -> Decision | None:
        """A slot of a subject there is that no document fills: a decision without rules."""
        found = self._lookup.declared(name)
        return None if found is None else decision_of(found.key, found.kind, found.slot)

    @property
    def constants(self) -> Mapping[tuple[str, str], ir.Node]:
        """What expressions read by a space and a name whatever the input: constants of libraries, the catalogue."""
        return MappingProxyType(self._constants)

    @property
    def matches(self) -> Mapping[Unit, RuleMatch]:
        """What the documents apply to."""
        return MappingProxyType(self._matches)

    @property
    def overridden(self) -> frozenset[DecisionKey]:
        """The decisions that exceptions override, in force or not."""
        return frozenset(self._exceptional.decisions)

    @property
    def is_watched(self) -> bool:
        """Whether somebody sees what its programs are asked."""
        return self._around is not None

    def expression(self, name: str) -> ir.Node:
        """The whole decision as one typed expression, for lowering to columns and for drawing."""
        return self._expressions.value(self.decision(name))

    def index(self, name: str) -> ir.Node:
        """The position of the deciding rule among those of the decision as one typed expression; `NO_RULE` for none."""
        return self._expressions.index(self.decision(name))

    def program(self, name: str) -> RowProgram:
        """The decision as a function of its roots, without provenance: the hot path.

        `.call(*roots)` takes the records in the order of `Decision.roots`, returns the value (None
        when no rule matches) and raises `CelError`.
        """
        decision = self.decision(name)
        known = self._values.get(decision.key)
        if known is None:
            make = self._around
            known = (
                compile_row(decision.roots, self._expressions.value(decision), budget=self.budget)
                if make is None
                else make(name)
            )
            self._values[decision.key] = known
        return known

    def adopt(self, programs: Mapping[str, Portable]) -> None:
        """Take programs that another process has made of this very graph, instead of making them when asked for."""
        for name, made in programs.items():
            if name in self:
                self._values.setdefault(self.decision(name).key, loaded(made, DEFAULT_BUDGET))

    def watched(self, wrap: Callable[[str, RowProgram], RowProgram]) -> "RuleGraph":
        """The same graph with something around its programs, by the decision's name, that sees what they are asked.

        Programs are made here and there once; whole columns are not watched.
        """
        graph = self._like(self._ordinary, self._exceptional)
        graph._around = lambda name: wrap(name, self.program(name))  # noqa: SLF001 - of one class
        return graph

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """What somebody makes of this graph, under a name of theirs: made when first asked for."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]  # type: ignore[no-any-return]  # a name stands for one thing

    @property
    def asked(self) -> tuple[str, ...]:
        """The decisions whose programs were made, since somebody asked for them."""
        return tuple(str(key) for key in tuple(self._values))

    def value(self, name: str, **roots: Any) -> Any:
        """The decision's value on these records, without provenance; None when no rule matches.

        Raises `CelError` when it has none, `UnknownDecision`. Roots that are not given count as empty.
        """
        return self.value_on(name, roots)

    def value_on(self, name: str, roots: Mapping[str, Any]) -> Any:
        """The same, with the records in a mapping by root."""
        known = self._calls.get(name)
        if known is None:
            known = self._calls[name] = self._call_of(name)
        call, wanted = known
        return call(*[roots.get(root, {}) for root in wanted]) if wanted else call()

    def is_fixed(self, name: str, document: str) -> bool:
        """Whether a decision has one value on all records that a document applies to: no other one speaks, and it says a constant.

        Raises `UnknownDecision`.
        """
        decision = self.decision(name)
        return (
            not self.is_watched
            and len(decision.rules) <= 1
            and all(
                rule.document == document
                and isinstance(self._expressions.resolved(rule.value, rule.key), ir.Const)
                for rule in decision.rules
            )
            and isinstance(decision.default, ir.Const)
        )

    def _call_of(self, name: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
        """What gives a decision's value, and the roots that it takes: none where no fact could make it another."""
        decision, program = self.decision(name), self.program(name)
        if self._around is None and not program.facts and not program.metered:
            with suppress(CelError):
                value = program.call(*({} for _ in decision.roots))
                if value is None or isinstance(value, bool | int | float | str):  # nobody can change those
                    return (lambda: value), ()
        return program.call, decision.roots

    def about(self, kind: str, subject: str, roots: Mapping[str, Any] = MappingProxyType({})) -> "About":
        """One subject, whose fields are asked about the same records, by root."""
        return About(self, f"{kind}/{subject}" if subject else kind, roots)

    def ask(self, name: str, **roots: Any) -> Answer:
        """The decision's value on these records, with its provenance.

        A root that is not given counts as an empty record: everything in it is missing.
        """
        decision = self.decision(name)
        given = [roots.get(root, {}) for root in decision.roots]
        error: CelError | None = None
        value: object = None
        try:
            value = self.program(name).call(*given)
        except CelError as problem:
            error = problem
        rules = self._deciding(decision, given)
        reads = self._reads(rules, dict(zip(decision.roots, given, strict=True)))
        refs = tuple(_ref(rule) for rule in rules)
        return Answer(name, value, error, Provenance(refs, reads, self.digest))

    def deciding_rule(self, name: str, *given: Any) -> Rule | None:
        """The rule that decides on these records; None when none matches or its test fails."""
        decision = self.decision(name)
        known = self._explained.get(decision.key)
        if known is None:
            known = compile_row(decision.roots, self._expressions.index(decision), budget=self.budget)
            self._explained[decision.key] = known
        try:
            at = known.call(*given)
        except CelError:
            return None
        return None if at == NO_RULE else decision.rules[int(at)]

    def variable(self, rule: Rule, name: str, **roots: Any) -> Any:
        """The value of a variable that a rule's document defines, on these records. Raises `CelError`."""
        decision = self.decisions[rule.key]
        expression = self._expressions.resolved(rule.variables[name], rule.key)
        known = [root for root in ROOTS if root in decision.roots or root in roots]
        return compile_row(known, expression, budget=self.budget).call(
            *(roots.get(root, {}) for root in known)
        )

    def _deciding(self, decision: Decision, given: list[Any]) -> list[Rule]:
        """The deciding rule and, below it, those of the parameters it uses; each once."""
        records = dict(zip(decision.roots, given, strict=True))
        rules: dict[str, Rule] = {}
        waiting = [decision]
        while waiting:
            asked = waiting.pop(0)
            # A parameter is asked with the kind's roots, of which the slot may have only some.
            rule = self.deciding_rule(str(asked.key), *(records.get(root, {}) for root in asked.roots))
            if rule is None or rule.id in rules:
                continue
            rules[rule.id] = rule
            waiting.extend(self.decisions[key] for key in parameters_of(rule.value, rule.key))
        return list(rules.values())

    @staticmethod
    def _reads(rules: list[Rule], records: Mapping[str, Facts]) -> tuple[FactRead, ...]:
        paths: dict[tuple[str, str], None] = {}
        for rule in rules:
            for node in (rule.value, rule.match.test):
                if node is not None:
                    paths.update(dict.fromkeys(sorted(facts_of(node))))
        return tuple(_read(root, path, records.get(root)) for root, path in paths)

    def for_component(self, component: Component) -> "RuleGraph":
        """The part that one component can ever ask; same digest, since it is the same revision."""
        kept = {key: d for key, d in self._ordinary.items() if component in d.components}
        return self._like(kept, self._exceptional.for_component(component))

    @property
    def in_force(self) -> frozenset[Terms]:
        """The exceptions whose rules take part."""
        return self._exceptional.in_force

    @cached_property
    def exceptions(self) -> tuple[Terms, ...]:
        """The exceptions of the revision, whether they hold or not, by their ends."""
        return self._exceptional.terms

    def at(self, moment: Timestamp) -> "RuleGraph":
        """The same revision with the exceptions of this moment in force, above all other rules.

        Asked twice for moments with the same exceptions, it gives the same graph, programs and all.
        """
        holding = frozenset(terms for terms in self.exceptions if terms.holds(moment))
        known = self._moments.get(holding)
        if known is None:
            made = self._like(self._ordinary, self._exceptional.at(holding))
            made._moments = self._moments  # noqa: SLF001 - of one class: what either makes, both know
            known = self._moments.setdefault(holding, made)
        return known

    def changes_after(self, moment: Timestamp) -> Timestamp | None:
        """When `at` gives another graph than at this moment; None when it never does again."""
        return next_change(self.exceptions, moment)

    def _like(self, ordinary: Decisions, exceptional: Exceptional) -> "RuleGraph":
        return RuleGraph(
            self._revision,
            self.units,
            self.classes,
            ordinary,
            self._constants,
            self._matches,
            exceptional,
            self.budget,
        )

    def with_rules(self, rules: Iterable[Rule]) -> "RuleGraph":
        """The same graph, these rules deciding alone where they stand: what a test or a question supposes.

        The exceptions in force stay in force, at whatever moment it is asked for.
        """
        decisions = dict(self.decisions)
        for rule in rules:
            decisions[rule.key] = replace(self.decision(str(rule.key)), rules=(rule,))
        return RuleGraph(
            self.digest,
            self.units,
            self.classes,
            decisions,
            self._constants,
            self._matches,
            budget=self.budget,
        )

    def subjects(self, kind: str) -> tuple[str, ...]:
        """The subjects of a kind (profile names, resources, ...), sorted."""
        return self._subjects.get(kind, ())

    @cached_property
    def _subjects(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, set[str]] = {}
        for unit in self.units:
            found.setdefault(unit.kind.name, set()).add(unit.subject)
        return {kind: tuple(sorted(names)) for kind, names in found.items()}

    def selections(self, kind: str, subject: str) -> tuple[Selection, ...]:
        """What a subject applies to as a whole: the matches of the documents that introduce it.

        Those are the documents of the lowest layer; what higher ones say about the subject narrows nothing and
        widens nothing. The subject applies where one of the selections does.
        """
        speaking = self._speaking(kind, subject)
        lowest = min((unit.layer for unit in speaking), default=0)
        return tuple(
            self.selection(unit) for unit in speaking if unit.layer == lowest and unit in self._matches
        )

    def selection(self, unit: Unit) -> Selection:
        """What one document applies to. Raises `KeyError` for one of a kind without `match`."""
        known = self._selected.get(unit)
        if known is not None:
            return known
        match = self._matches[unit]
        key = DecisionKey(unit.kind.name, unit.subject, "match")
        test = None if match.test is None else self._expressions.resolved(match.test, key)
        if test is not None and match.can_fail(test):
            test = settled(test, match.place)
        roots = tuple(root for root in ROOTS if root in unit.kind.roots)
        return self._selected.setdefault(
            unit,
            Selection(
                unit.id,
                match.requirements,
                roots,
                test,
                self.budget,
                conditional=match.condition_span is not None,
            ),
        )

    @cached_property
    def catalogue(self) -> Catalogue:
        """Which class and band a pod belongs to, by the revision's own classes and bands."""
        return self.classes.resolver

    def setting(self, kind: str, subject: str, name: str, records: Mapping[str, Any] | None = None) -> Any:
        """A plain setting of the spec (not a slot): the highest-ranked document that sets it wins.

        With `records`, by root, only documents that apply to them count; raises `CelError` where that cannot be
        told.
        """
        units = self.setting_units(kind, subject, name, records)
        return getattr(units[-1].spec, name) if units else None

    def setting_units(
        self, kind: str, subject: str, name: str, records: Mapping[str, Any] | None = None
    ) -> list[Unit]:
        """The documents that count for a setting, those that set it last, the winning one at the end. Raises `CelError`."""
        speaking = [
            unit
            for unit in self._speaking(kind, subject)
            if records is None or unit not in self._matches or self.selection(unit).holds(records)
        ]
        return sorted(speaking, key=lambda unit: name in unit.spec.model_fields_set)

    def items(self, kind: str, subject: str, name: str) -> tuple[Item, ...]:
        """The entries of a list of named things, in order of first appearance from the lowest layer up."""
        merged: dict[str, dict[str, Any]] = {}
        for unit in self._speaking(kind, subject):
            for entry in getattr(unit.spec, name) or ():
                fields = {key: getattr(entry, key) for key in entry.model_fields_set}
                merged.setdefault(entry.name, {}).update(fields)
        return tuple(Item(key, fields) for key, fields in merged.items())

    def _speaking(self, kind: str, subject: str) -> list[Unit]:
        """The documents of a kind and subject, the winning one last."""
        return self._documents.get((kind, subject), [])

    @cached_property
    def _documents(self) -> dict[tuple[str, str], list[Unit]]:
        found: dict[tuple[str, str], list[Unit]] = {}
        for unit in sorted(self.units, key=lambda unit: (unit.rank, unit.id)):
            found.setdefault((unit.kind.name, unit.subject), []).append(unit)
        return found


@dataclass(frozen=True, slots=True)
class About:
    """The fields of one subject (`target`, such as `Overcommit/batch`), asked about the same records, by root.

    Fields are named as decisions are, without their target: `publish.atLeastEvery`, `guards[errors].require`.
    """

    graph: RuleGraph
    target: str
    roots: Facts

    def value(self, field: str, **more: Any) -> Any:
        """A field's value, with `more` records beside those there are; see `RuleGraph.value`."""
        return self.graph.value_on(f"{self.target}.{field}", {**self.roots, **more} if more else self.roots)

    def value_or(self, field: str, otherwise: T, **more: Any) -> Any | T:
        """The same, and `otherwise` where it cannot be told."""
        try:
            return self.value(field, **more)
        except CelError:
            return otherwise

    def says(self, field: str) -> bool:
        """Whether any rule speaks of a field."""
        return f"{self.target}.{field}" in self.graph


def _ref(rule: Rule) -> RuleRef:
    return RuleRef(str(rule.key), rule.document, rule.layer, rule.span, rule.text, rule.terms)


def _read(root: str, path: str, record: object) -> FactRead:
    name = f"{root}.{path}" if path else root
    if not path:
        return FactRead(name, record)
    if isinstance(record, Mapping) and path in record:
        return FactRead(name, record[path])
    return FactRead(name, None, present=False)
