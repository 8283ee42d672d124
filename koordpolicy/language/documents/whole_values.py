"""Values replaced in the text of a file, everything else left as it stands."""

import re
from collections.abc import Iterable

from koordpolicy.diagnostics import Position, Span

_LINE_END = re.compile(r"\r\n|\r|\n")


def with_values(text: str, edits: Iterable[tuple[Span, str]]) -> str:
    """The text with another flow value, which must fit on one line, at each of these spans of whole values."""
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
