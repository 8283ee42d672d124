"""What came of running tests, as values; drawing them is for the command line."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.diagnostics import Diagnostic, Diagnostics, Span
from koordpolicy.graph.answer import Answer
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.testing.branches import Branch, Expression
from koordpolicy.graph.testing.coverage import Coverage
from koordpolicy.language.cel.types import Type
from koordpolicy.language.documents.document import Path


@dataclass(frozen=True, slots=True)
class Failure:
    """A decision is expected to fail with this text in its error."""

    text: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a case expects of one decision. `wanted` is plain data as written, or a `Failure`.

    `span` is the place of the expected value, `path` leads to it.
    """

    decision: str
    wanted: object
    tolerance: object
    span: Span
    path: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """One expectation, what was decided instead or as expected, and the type in which both are written.

    `roots` are the records that the decision may read. `difference` says why the expectation does not hold;
    empty when it does. `parameters` are the values of those that the deciding rules used, by decision.
    `variables` are those of the deciding rule with their values as text, known where the expectation does not
    hold. `unsaid` are the facts that the test did not say, by `root.path`. `passed_over` are the rules that did not apply,
    where none did and the expectation does not hold.
    """

    expectation: Expectation
    answer: Answer
    type: Type
    roots: tuple[str, ...]
    difference: str = ""
    parameters: Mapping[str, tuple[Type, Any]] = field(default_factory=dict)
    variables: tuple[tuple[str, str], ...] = ()
    unsaid: frozenset[str] = frozenset()
    passed_over: tuple[Rule, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.difference


def _never(_graph: RuleGraph, _decisions: Collection[str]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: the test document it stands in, its outcomes, and what is wrong with the case itself.

    `branches` are those that it took, `expressions` those that it evaluated, where coverage was asked for. `holds` tells
    whether another graph still gives what is expected of some of the decisions.
    """

    suite: str
    name: str
    span: Span
    outcomes: tuple[Outcome, ...]
    found: tuple[Diagnostic, ...] = ()
    branches: frozenset[Branch] = frozenset()
    expressions: frozenset[Expression] = frozenset()
    holds: Callable[[RuleGraph, Collection[str]], bool] = field(default=_never, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        return not self.found and all(outcome.passed for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Results:
    """All cases that ran, in order of files; the findings of all of them; what they covered, where that was asked for."""

    cases: tuple[CaseResult, ...]
    found: Diagnostics
    coverage: Coverage | None

    @property
    def passed(self) -> bool:
        return all(case.passed for case in self.cases)
