"""Golden update: actual values written into the text of the tests, everything else left as it stands."""

from collections.abc import Iterable, Mapping

from koordpolicy.diagnostics import Span
from koordpolicy.graph.notation import TooManyElements, as_before, flow
from koordpolicy.graph.testing.results import CaseResult, Outcome
from koordpolicy.language.documents.whole_values import with_values


def updated(cases: Iterable[CaseResult], sources: Mapping[str, str]) -> dict[str, str]:
    """The new texts of the files whose expectations do not hold, by path.

    Only the expected value itself is replaced, where the actual one is not too large to stand there; comments, order and
    layout stay, and so do units. An expected list or mapping
    over several lines becomes one line.
    """
    edits: dict[str, list[tuple[Span, str]]] = {}
    for case in cases:
        for outcome in case.outcomes:
            if not outcome.passed:
                span, value = outcome.expectation.span, _new_value(outcome)
                if value is not None:
                    edits.setdefault(span.file, []).append((span, value))
    return {file: with_values(sources[file], spans) for file, spans in edits.items() if file in sources}


def _new_value(outcome: Outcome) -> str | None:
    answer = outcome.answer
    if answer.error is not None:
        return flow({"error": str(answer.error)})
    try:
        return flow(as_before(outcome.type, answer.value, outcome.expectation.wanted))
    except TooManyElements:
        return None
