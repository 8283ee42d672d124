"""Findings in documents of which a part could not be read: only what does not follow from the missing part is told."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from koordpolicy.diagnostics import Diagnostic, Diagnostics, Severity
from koordpolicy.language.documents import Document

_BY_THEMSELVES: Final = frozenset(
    (
        "KP107",
        "KP201",
        "KP203",
        "KP204",
        "KP205",
        "KP207",
        "KP208",
        "KP209",
        "KP210",
        "KP211",
        "KP212",
        "KP213",
        "KP214",
        "KP220",
        "KP306",
        "KP309",
    )
)
"""Mistakes of a value or of a part of an expression, whatever else stands around it."""


def without_consequences(
    found: Diagnostics, documents: Iterable[Document], certain: Collection[Diagnostic]
) -> Diagnostics:
    """The findings but for those that a mended document may owe to what is missing in it.

    `certain` are those of reading and schema, which are causes.
    """
    mended: dict[str, list[tuple[int, int]]] = {}
    for document in documents:
        if document.mended:
            span = document.positions.value()
            mended.setdefault(document.file, []).append((span.start.line, span.end.line))
    if not mended:
        return found
    kept = Diagnostics()
    for one in found:
        if one in certain or one.code in _BY_THEMSELVES or not _lies_in(one, mended):
            kept.append(one)
    return kept


def _lies_in(one: Diagnostic, mended: Mapping[str, list[tuple[int, int]]]) -> bool:
    """Whether a finding, or for a mere warning a place that it speaks of, lies in a mended document."""
    spans = [one.span]
    if one.severity is not Severity.ERROR:
        spans += [note.span for note in one.notes if note.span is not None]
    return any(
        first <= span.start.line <= last for span in spans for first, last in mended.get(span.file, ())
    )
