"""Running PolicyTests on a graph."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.answer import Answer
from koordpolicy.graph.describe.answer import variable_values
from koordpolicy.graph.graph import RuleGraph, UnknownDecision
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.state import Unit
from koordpolicy.graph.testing.branches import Branch, Branches, Expression
from koordpolicy.graph.testing.compare import Tolerance, agrees, expected_value, tolerance_of
from koordpolicy.graph.testing.coverage import coverage_of
from koordpolicy.graph.testing.facts import Said, laid_over, read_facts
from koordpolicy.graph.testing.findings import report_coverage, report_failure, report_literal
from koordpolicy.graph.testing.overlay import overlay
from koordpolicy.graph.testing.results import CaseResult, Expectation, Failure, Outcome, Results
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.types import DYN, Type
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import BadLiteral
from koordpolicy.language.kinds.bundle import PolicyBundleSpec, PolicyCase, PolicyTestSpec

Chosen = Callable[[str, str], bool]
"""Whether a case is to run: (name of the test document, name of the case) -> bool."""


def every_case(_suite: str, _case: str) -> bool:
    """Runs everything."""
    return True


@dataclass(frozen=True, slots=True)
class _Suite:
    unit: Unit
    spec: PolicyTestSpec
    shared: Said


def run_tests(
    graph: RuleGraph, units: Iterable[Unit], chosen: Chosen = every_case, *, coverage: bool = False
) -> Results:
    """Run the PolicyTests of the highest layer among the units: a bundle's own, not those of its packs.

    Findings have KP501 for a failed expectation, KP502 for an unknown decision, KP503 for a fact that is
    none, KP305 and KP306 for parameters, KP106 and KP107 for expected values of another type, KP504 for
    too little coverage, which is judged only when all cases ran.

    With `coverage`, or where the bundle asks for some, it is found out which branches of expressions the cases take.
    """
    everything = tuple(units)
    own = max((unit.layer for unit in everything), default=0)
    mine = [unit for unit in everything if unit.layer == own]
    found = Diagnostics()
    results: list[CaseResult] = []
    skipped = False
    minimum = [unit for unit in mine if _minimum(unit)]
    branches = Branches(graph, everything) if coverage or minimum else None
    for suite in _suites(mine, found):
        for at, case in enumerate(suite.spec.cases):
            if chosen(suite.unit.document.name, case.name):
                results.append(_Case(graph, suite, at, case, found, branches).run())
            else:
                skipped = True
    if branches is None:
        return Results(tuple(results), found, None)
    covered = coverage_of(branches.all, [result.branches for result in results])
    for unit in () if skipped else minimum:
        report_coverage(unit, _minimum(unit), covered, found)
    return Results(tuple(results), found, covered)


def _minimum(unit: Unit) -> int:
    """The share of branches that a bundle wants covered, in percent; 0 for none."""
    options = unit.spec.tests if isinstance(unit.spec, PolicyBundleSpec) else None
    return 0 if options is None else options.minimum_coverage


def _suites(units: list[Unit], found: Diagnostics) -> list[_Suite]:
    tests = [unit for unit in units if isinstance(unit.spec, PolicyTestSpec)]
    tests.sort(key=lambda unit: (unit.document.file, unit.document.index))
    return [
        _Suite(unit, unit.spec, read_facts(unit.spec.given, unit.document, ("spec", "given"), found))
        for unit in tests
        if isinstance(unit.spec, PolicyTestSpec)
    ]


class _Case:
    """One case on its way to its result."""

    def __init__(
        self,
        graph: RuleGraph,
        suite: _Suite,
        at: int,
        case: PolicyCase,
        found: Diagnostics,
        branches: Branches | None,
    ) -> None:
        self.graph = graph
        self.branches = branches
        self.suite = suite
        self.case = case
        self.path = ("spec", "cases", at)
        self.found = found

    def run(self) -> CaseResult:
        problems = Diagnostics()
        expectations = list(self._expectations(problems))
        records, said = self._inputs(expectations, problems)
        found = (
            [] if records is None else [self._outcome(one, records, said, problems) for one in expectations]
        )
        outcomes = tuple(outcome for outcome in found if outcome is not None)
        self.found.extend(problems)
        branches, expressions = self._taken(expectations, records, said)
        unit = self.suite.unit
        return CaseResult(
            unit.document.name,
            self.case.name,
            unit.document.positions.value((*self.path, "name")),
            outcomes,
            tuple(problems),
            branches,
            expressions,
            partial(self._holds, outcomes, records or {}, said),
        )

    def _holds(
        self,
        outcomes: Iterable[Outcome],
        records: Mapping[str, Any],
        said: Said,
        graph: RuleGraph,
        decisions: Collection[str],
    ) -> bool:
        """Whether another graph gives what is expected of these decisions, which were compared before."""
        asked = [outcome for outcome in outcomes if outcome.expectation.decision in decisions]
        try:
            supposed = self._supposed(graph, [outcome.expectation for outcome in asked], said, Diagnostics())
            return all(_agrees(outcome, supposed, records) for outcome in asked)
        except UnknownDecision:
            return False

    def _taken(
        self, expectations: Iterable[Expectation], records: Mapping[str, Any] | None, said: Said
    ) -> tuple[frozenset[Branch], frozenset[Expression]]:
        """The branches that the case takes, and the expressions that it evaluates."""
        if self.branches is None or records is None:
            return frozenset(), frozenset()
        graph = self._supposed(self.branches.graph, expectations, said, Diagnostics())
        for one in expectations:
            self.branches.evaluate(graph, one.decision, records)
        return self.branches.taken()

    def _inputs(
        self, expectations: Iterable[Expectation], problems: Diagnostics
    ) -> tuple[Mapping[str, Any] | None, Said]:
        """The records and what was said of them, parameters laid over; no records when something is wrong."""
        document = self.suite.unit.document
        wrong = Diagnostics()
        own = read_facts(self.case.given, document, (*self.path, "given"), wrong)
        said = laid_over(self.suite.shared, own)
        self.graph = self._supposed(self.graph, expectations, said, wrong)
        problems.extend(wrong)
        return (None if len(wrong) else records_of(said)), said

    def _supposed(
        self, graph: RuleGraph, expectations: Iterable[Expectation], said: Said, wrong: Diagnostics
    ) -> RuleGraph:
        """The graph at the case's moment, with its parameters."""
        if isinstance(moment := said.get(("now", "")), Timestamp):
            graph = graph.at(moment)  # exceptions hold in cases that say when they take place
        keys = [graph.decision(one.decision).key for one in expectations]
        where = (*self.path, "parameters")
        return overlay(graph, self.suite.unit, where, self.case.parameters, keys, wrong)

    def _expectations(self, problems: Diagnostics) -> Iterable[Expectation]:
        positions = self.suite.unit.document.positions
        for decision, wanted in self.case.expect.items():
            path = (*self.path, "expect", decision)
            try:
                self.graph.decision(decision)
            except UnknownDecision as error:
                message, _, help = str(error).partition("; ")
                problems.add(
                    "KP502", positions.key(path), message, help=help or _advice(self.graph, decision)
                )
                continue
            failure = isinstance(wanted, Mapping) and set(wanted) == {"error"}
            yield Expectation(
                decision,
                Failure(str(wanted["error"] or "")) if isinstance(wanted, Mapping) and failure else wanted,
                self.case.tolerance.get(decision),
                positions.value(path),
                path,
            )
        for decision in self.case.tolerance:
            if decision not in self.case.expect:
                problems.add(
                    "KP502",
                    positions.key((*self.path, "tolerance", decision)),
                    f"a tolerance for `{decision}`, of which the case expects nothing",
                    help="name a decision that stands under `expect`",
                )

    def _outcome(
        self, one: Expectation, records: Mapping[str, Any], said: Said, problems: Diagnostics
    ) -> Outcome | None:
        """Ask and compare; None when what is expected cannot be a value of the decision."""
        answer = self.graph.ask(one.decision, **records)
        rule = self._deciding(one.decision, records)
        type = self._type(one.decision, rule)
        path: Path = one.path
        try:
            wanted = None if isinstance(one.wanted, Failure) else expected_value(type, one.wanted)
            path = (*self.path, "tolerance", one.decision)
            tolerance = tolerance_of(type, one.tolerance)
        except BadLiteral as bad:
            report_literal(self.suite.unit, one, path, type, bad.problem, problems)
            return None
        difference = _difference(one, answer, wanted, tolerance)
        outcome = Outcome(
            one,
            answer,
            type,
            self.graph.decision(one.decision).roots,
            difference,
            self._parameters(answer, records),
            tuple(variable_values(self.graph, rule, records)) if difference and rule is not None else (),
            _unsaid(answer, said),
            self.graph.decision(one.decision).rules if difference and rule is None else (),
        )
        if difference:
            report_failure(self.case.name, outcome, self.found)
        return outcome

    def _deciding(self, name: str, records: Mapping[str, Any]) -> Rule | None:
        decision = self.graph.decision(name)
        return self.graph.deciding_rule(name, *(records.get(root, {}) for root in decision.roots))

    def _type(self, name: str, rule: Rule | None) -> Type:
        """The type of the value that was given: that of the slot, but where anything is permitted the rule's."""
        declared = self.graph.decision(name).type
        return rule.value.type if rule is not None and rule.value.type != DYN else declared

    def _parameters(self, answer: Answer, records: Mapping[str, Any]) -> dict[str, tuple[Type, Any]]:
        """The values of the parameters that the deciding rules use, by name."""
        values: dict[str, tuple[Type, Any]] = {}
        for ref in answer.provenance.rules:
            name = ref.decision
            if ".parameters." in name:
                asked = self.graph.ask(name, **records)
                if asked.error is None:
                    values[name] = (self.graph.decision(name).type, asked.value)
        return values


def _difference(one: Expectation, answer: Answer, wanted: object, tolerance: Tolerance) -> str:
    """Why the answer is not what is expected; empty when it is."""
    if isinstance(one.wanted, Failure):
        if answer.error is None:
            return "it does not fail"
        return "" if one.wanted.text in str(answer.error) else "it fails with another error"
    if answer.error is not None:
        return "it fails"
    return "" if agrees(wanted, answer.value, tolerance) else "the value is another"


def _agrees(outcome: Outcome, graph: RuleGraph, records: Mapping[str, Any]) -> bool:
    """Whether a graph gives what was expected, of the type that it had."""
    one = outcome.expectation
    try:
        value = graph.value(one.decision, **records)
    except CelError as error:
        return isinstance(one.wanted, Failure) and one.wanted.text in str(error)
    if isinstance(one.wanted, Failure):
        return False
    return agrees(expected_value(outcome.type, one.wanted), value, tolerance_of(outcome.type, one.tolerance))


def _unsaid(answer: Answer, said: Said) -> frozenset[str]:
    names = {f"{root}.{path}" if path else root for root, path in said}
    return frozenset(read.path for read in answer.provenance.facts if read.path not in names)


def _advice(graph: RuleGraph, name: str) -> str:
    """What there is instead of an unknown decision: what is named alike, the fields of its target, else the targets."""
    target, _, wanted = name.partition(".")
    kind = target.partition("/")[0]
    elsewhere = sorted(str(key) for key in graph.decisions if key.kind == kind and key.field == wanted)
    fields = sorted({key.field for key in graph.decisions if key.target == target})
    close = nearest(wanted, fields) if fields else None
    if close or (fields and len(elsewhere) == 1):
        return f"did you mean `{f'{target}.{close}' if close else elsewhere[0]}`?"
    if fields:
        return f"`{target}` decides " + ", ".join(f"`{field}`" for field in fields[:8])
    document = next((one for one in graph.units if one.id == target and one.target != target), None)
    if document is not None:
        return f"the document `{target}` is about `{document.target}`: write that"
    targets = sorted({key.target for key in graph.decisions if key.kind == target.partition("/")[0]})
    if targets:
        return "there is " + ", ".join(f"`{one}`" for one in targets[:8])
    return "a decision is written `Kind/subject.field`; `koordpolicy graph` shows all of them"
