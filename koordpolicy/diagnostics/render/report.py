"""What is to be shown, in order and within its cap; the renderers only draw it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from koordpolicy.diagnostics.escaping import encodable, one_line, safe
from koordpolicy.diagnostics.value import Diagnostic, Fix, Note, Severity, Span

DEFAULT_LIMIT = 200
DEFAULT_WIDTH = 80

# As YAML 1.2 counts lines; `str.splitlines` would also break at form feeds and Unicode separators.
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_WEIGHT = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many findings of each severity."""

    errors: int = 0
    warnings: int = 0
    notes: int = 0

    @classmethod
    def of(cls, diagnostics: Iterable[Diagnostic]) -> Self:
        severities = [found.severity for found in diagnostics]
        return cls(*(severities.count(severity) for severity in Severity))

    @property
    def total(self) -> int:
        return self.errors + self.warnings + self.notes

    def __str__(self) -> str:
        """Such as `2 errors and 1 warning`; what is zero is left out."""
        parts = [
            f"{count} {word}{'' if count == 1 else 's'}"
            for count, word in ((self.errors, "error"), (self.warnings, "warning"), (self.notes, "note"))
            if count
        ]
        if len(parts) > 1:
            parts[-2:] = [f"{parts[-2]} and {parts[-1]}"]
        return ", ".join(parts) or "no findings"


@dataclass(frozen=True, slots=True)
class Report:
    """Findings ready to be drawn.

    `findings` are the ones to show, by file and position. `counts` speaks of all of them, `omitted` of those
    beyond the cap. All text of theirs is safe to show (`diagnostics/escaping.py`), so renderers need only care for
    what their format itself would misread. `lines` holds the text of the files that the shown ones mention, `files` the names of all
    files that were looked at.
    """

    findings: tuple[Diagnostic, ...]
    counts: Counts
    omitted: Counts
    files: tuple[str, ...]
    lines: Mapping[str, tuple[str, ...]]
    colour: bool = False
    width: int = DEFAULT_WIDTH

    @classmethod
    def of(
        cls,
        diagnostics: Iterable[Diagnostic],
        sources: Mapping[str, str],
        files: Iterable[str] | None = None,
        *,
        colour: bool = False,
        width: int = DEFAULT_WIDTH,
        limit: int = DEFAULT_LIMIT,
    ) -> Self:
        """Sort and cap. A warning never pushes an error beyond the cap. `files`: all of `sources` where not given."""
        everything = sorted(map(_shown, diagnostics), key=lambda found: found.order)
        texts = {one_line(file): text for file, text in sources.items()}
        shown = everything
        if 0 < limit < len(everything):
            chosen = sorted(everything, key=lambda found: _WEIGHT[found.severity])[:limit]
            shown = sorted(chosen, key=lambda found: found.order)
        counts, visible = Counts.of(everything), Counts.of(shown)
        return cls(
            findings=tuple(shown),
            counts=counts,
            omitted=Counts(
                counts.errors - visible.errors,
                counts.warnings - visible.warnings,
                counts.notes - visible.notes,
            ),
            files=tuple(sorted(texts if files is None else map(one_line, files))),
            lines={
                file: tuple(_LINE_BREAK.split(texts[file])) for file in _mentioned(shown) if file in texts
            },
            colour=colour,
            width=width,
        )

    def line(self, file: str, number: int) -> str | None:
        """The text of a line (from 1) without its break; None when the file or the line isn't there."""
        lines = self.lines.get(file, ())
        return lines[number - 1] if 0 < number <= len(lines) else None


def _shown(found: Diagnostic) -> Diagnostic:
    """A finding with nothing unsafe in it. A fix that no format could hold is left out."""
    help, fix = found.help, found.fix
    if fix is not None:
        whole = encodable(fix.replacement) == fix.replacement
        fix = Fix(safe(fix.description), _named(fix.span), fix.replacement, fix.safe) if whole else None
    return replace(
        found,
        code=one_line(found.code),
        message=safe(found.message),
        span=_named(found.span),
        notes=tuple(Note(safe(note.message), note.span and _named(note.span)) for note in found.notes),
        help=help if help is None else safe(help),
        fix=fix,
    )


def _named(span: Span) -> Span:
    file = one_line(span.file)
    return span if file == span.file else replace(span, file=file)


def _mentioned(diagnostics: Iterable[Diagnostic]) -> set[str]:
    files = set()
    for found in diagnostics:
        files.add(found.span.file)
        files.update(note.span.file for note in found.notes if note.span is not None)
        if found.fix is not None:
            files.add(found.fix.span.file)
    return files
