"""Golden update: actual values written into the text of the tests, everything else left as it stands."""

import re
from collections.abc import Iterable, Mapping

from koordpolicy.diagnostics import Position, Span
from koordpolicy.graph.notation import TooManyElements, exactly, flow
from koordpolicy.graph.testing.results import CaseResult, Outcome

_LINE_END = re.compile(r"\r\n|\r|\n")


def updated(cases: Iterable[CaseResult], sources: Mapping[str, str]) -> dict[str, str]:
    """The new texts of the files whose expectations do not hold, by path.

    Only the expected value itself is replaced, where the actual one is not too large to stand there; comments, order and
    layout stay. An expected list or mapping
    over several lines becomes one line.
    """
    edits: dict[str, list[tuple[Span, str]]] = {}
    for case in cases:
        for outcome in case.outcomes:
            if not outcome.passed:
                span, value = outcome.expectation.span, _new_value(outcome)
                if value is not None:
                    edits.setdefault(span.file, []).append((span, value))
    return {file: _applied(sources[file], spans) for file, spans in edits.items() if file in sources}


def _new_value(outcome: Outcome) -> str | None:
    answer = outcome.answer
    if answer.error is not None:
        return flow({"error": str(answer.error)})
    try:
        return flow(exactly(outcome.type, answer.value))
    except TooManyElements:
        return None


def _applied(text: str, edits: list[tuple[Span, str]]) -> str:
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    for span, replacement in sorted(edits, key=lambda edit: edit[0].start, reverse=True):
        start, end = _offset(starts, span.start), _offset(starts, span.end)
        old = text[start:end]
        kept = old[len(old.rstrip()) :]  # a block collection reaches to where the next line begins
        before = text[:start]
        if _begins_line(text, starts, span.start):
            # The value stood on lines of its own, below its key: it moves up beside it.
            before = before.rstrip() + " "
        text = before + replacement + kept + text[end:]
    return text


def _begins_line(text: str, starts: list[int], position: Position) -> bool:
    first = starts[position.line - 1]
    return not text[first : first + position.column - 1].strip()


def _offset(starts: list[int], position: Position) -> int:
    return starts[position.line - 1] + position.column - 1
