"""What went wrong in tests, as diagnostics."""

from koordpolicy.diagnostics import Diagnostics, Note
from koordpolicy.graph.notation import NOTHING, flow, show
from koordpolicy.graph.reads import ShownFact, shown_facts
from koordpolicy.graph.state import Unit
from koordpolicy.graph.testing.compare import plain_type
from koordpolicy.graph.testing.coverage import Coverage
from koordpolicy.graph.testing.results import Expectation, Failure, Outcome
from koordpolicy.language.cel.types import Type
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import LiteralProblem, type_name

_MOST_FACTS = 12
"""Facts named in a note; the text of `koordpolicy test` shows all of them."""


def expected_text(outcome: Outcome) -> str:
    """What was expected, as policies write it."""
    wanted = outcome.expectation.wanted
    if isinstance(wanted, Failure):
        return f"an error with `{wanted.text}`" if wanted.text else "an error"
    return NOTHING if wanted is None else flow(wanted)


def actual_text(outcome: Outcome) -> str:
    """What was decided, as policies write it."""
    answer = outcome.answer
    return (
        f"an error: {answer.error.message}" if answer.error is not None else show(outcome.type, answer.value)
    )


def facts_of(outcome: Outcome) -> tuple[ShownFact, ...]:
    """The facts that the answer depends on."""
    return shown_facts(outcome.answer, outcome.roots)


def report_failure(case: str, outcome: Outcome, found: Diagnostics) -> None:
    """KP501 at the expected value, with the rules that decided and the facts they read."""
    one = outcome.expectation
    refs = outcome.answer.provenance.rules
    notes = [Note(f"in the case `{case}`")]
    notes += [
        Note(f"`{ref.document}` decided" if at == 0 else f"with `{ref.decision}` from here", ref.span)
        for at, ref in enumerate(refs)
    ]
    if not refs and outcome.answer.error is None:
        notes.append(Note("no rule matches"))
    beyond = "" if one.tolerance is None else f" ± `{one.tolerance}`"
    facts = [f"{fact.path} = {fact.value}" for fact in facts_of(outcome)]
    if facts:
        more = f" and {len(facts) - _MOST_FACTS} more" if len(facts) > _MOST_FACTS else ""
        notes.append(Note("facts: " + ", ".join(facts[:_MOST_FACTS]) + more))
    found.add(
        "KP501",
        one.span,
        f"`{one.decision}` is {_quoted(actual_text(outcome))}, expected {_quoted(expected_text(outcome))}{beyond}",
        notes=tuple(notes),
        help="mend the policy, or the expected value: `koordpolicy test --update` writes it",
    )


def _quoted(text: str) -> str:
    return text if text == NOTHING or text.startswith("an error") else f"`{text}`"


def report_literal(
    unit: Unit, one: Expectation, path: Path, type: Type, problem: LiteralProblem, found: Diagnostics
) -> None:
    """An expected value or a tolerance at `path` that cannot be one of the decision."""
    found.add(
        "KP106" if problem.wrong_type else "KP107",
        unit.document.positions.value((*path, *problem.path)),
        f"`{one.decision}` has the type `{type_name(plain_type(type))}`: {problem.message}",
        help=problem.help,
    )


def report_coverage(unit: Unit, minimum: int, coverage: Coverage, found: Diagnostics) -> None:
    """KP504 where tests take fewer branches than the bundle asks for."""
    share = coverage.branches
    if share.percent >= minimum:
        return
    found.add(
        "KP504",
        unit.document.positions.value(("spec", "tests", "minimumCoverage")),
        f"tests take {share.reached} of {share.all} branches, {share.percent:.0f} %, less than {minimum} %",
        notes=tuple(Note(f"{branch.missed}: `{branch.text}`", branch.span) for branch in coverage.missed[:3]),
        help="add cases; `koordpolicy test --coverage` lists the branches that none takes",
    )
