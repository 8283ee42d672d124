"""How a change of a decoded string is written in its file."""

import re

from koordpolicy.diagnostics import Span
from koordpolicy.language.documents.text import TextMap, decode

_PLAIN = re.compile(r"[^\s:#,\[\]{}'\"](?:[^\n\r:#,\[\]{}]*[^\s:#,\[\]{}])?")
"""What may stand amid a plain scalar wherever that stands, in braces too."""


def replaced(text: TextMap, start: int, end: int, replacement: str) -> tuple[Span, str] | None:
    """The span of the file and the characters to put there, so that `value[start:end]` becomes `replacement`.

    `None` where the scalar's style cannot hold it, or where more than the text itself would have to change.
    """
    written = _written(replacement, text.style, at_start=start == 0)
    if written is None:
        return None
    first, last = text.offset(start), text.offset(end)
    if end > start:
        span = text.span(start, end)
        # What is cut out ends where its last character does, not where the next one begins: a line may lie between.
        last = first + _length(text, span)
    source = text.lines.text
    edited = source[:first] + written + source[last:]
    value, _ = decode(edited, text.start, text.end + len(edited) - len(source), text.style)
    if value != text.value[:start] + replacement + text.value[end:]:
        return None
    return text.lines.exactly(first, last), written


def _length(text: TextMap, span: Span) -> int:
    """How many characters a span of the file covers."""
    return text.lines.offset(span.end) - text.lines.offset(span.start)


def _written(replacement: str, style: str, *, at_start: bool) -> str | None:
    if "\n" in replacement or "\r" in replacement:
        return None
    if style == "'":
        return replacement.replace("'", "''")
    if style == '"':
        return replacement.replace("\\", "\\\\").replace('"', '\\"')
    if style == "":
        if at_start and not replacement[:1].isalnum():
            return None
        return replacement if not replacement or _PLAIN.fullmatch(replacement) else None
    return replacement
