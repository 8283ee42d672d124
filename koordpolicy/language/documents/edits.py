"""Edits of files: how a change of a decoded string is written, and how fixes are carried out."""

import re
from collections.abc import Iterable

from koordpolicy.diagnostics import Fix, Span
from koordpolicy.language.documents.scalars import NotANumberHere, plain
from koordpolicy.language.documents.text import Lines, TextMap, decode

_PLAIN = re.compile(r"[^\s:#,\[\]{}'\"](?:[^\n\r:#,\[\]{}]*[^\s:#,\[\]{}])?")
"""What may stand amid a plain scalar wherever that stands, in braces too."""


def replaced(text: TextMap, start: int, end: int, replacement: str) -> tuple[Span, str] | None:
    """The span of the file and the characters to put there, so that `value[start:end]` becomes `replacement`.

    `None` where the scalar's style cannot hold it, or where more than the text itself would have to change.
    """
    written = _written(replacement, text.style, at_start=start == 0)
    if (
        written is None
        or not 0 <= start < end <= len(text.value)
        or not _within_a_line(text.value, start, end, replacement)
    ):
        return None
    # What is cut out ends where its last character does, not where the next one begins: a line may lie between.
    span = text.span(start, end)
    first, last = text.lines.offset(span.start), text.lines.offset(span.end)
    source = text.lines.text
    edited = source[:first] + written + source[last:]
    value, _ = decode(edited, text.start, text.end + len(edited) - len(source), text.style)
    if value != text.value[:start] + replacement + text.value[end:] or not (text.style or _is_text(value)):
        return None
    return text.lines.exactly(first, last), written


def _within_a_line(value: str, start: int, end: int, replacement: str) -> bool:
    """Whether the space around a line's text, which YAML may read as layout, stays as it is."""
    cut = value[start:end]
    if "\n" in cut or "\r" in cut:
        return False
    if cut == cut.strip() and replacement and replacement == replacement.strip():
        return True
    return bool(value[:start][-1:].strip() and value[end : end + 1].strip())


def _is_text(plain_scalar: str) -> bool:
    """Whether YAML takes a scalar without quotes for a text, and no number or word with a meaning."""
    try:
        return isinstance(plain(plain_scalar), str)
    except NotANumberHere:
        return False


def applied(lines: Lines, fixes: Iterable[Fix]) -> tuple[str, list[Fix]]:
    """The text with fixes carried out, and those of them that were: none that touches one before it in the file."""
    done: list[Fix] = []
    parts: list[str] = []
    at = 0
    for fix in sorted(fixes, key=lambda one: one.span):
        start, end = lines.offset(fix.span.start), lines.offset(fix.span.end)
        if start < at or (done and start == at == end):
            continue
        parts += (lines.text[at:start], fix.replacement)
        at = end
        done.append(fix)
    return "".join((*parts, lines.text[at:])), done


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
