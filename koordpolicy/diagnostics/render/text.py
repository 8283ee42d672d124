"""Findings for a person at a terminal: the source with a caret, and what to do about it."""

from collections.abc import Iterator
from dataclasses import dataclass

from koordpolicy.diagnostics.render.display import clip, width_of, wrap
from koordpolicy.diagnostics.render.report import Report
from koordpolicy.diagnostics.value import Diagnostic, Note, Severity, Span

_BOLD = {
    Severity.ERROR: "1;31",
    Severity.WARNING: "1;33",
    Severity.NOTE: "1;36",
}
_FRAME = "1;34"
_STRONG = "1"
_SHOWN_LINES = 4
_NARROWEST_LABEL = 16


@dataclass(frozen=True, slots=True)
class _Mark:
    """A stretch of one line to underline, in code points from 0, with a word beside it."""

    start: int
    end: int
    sign: str
    label: str


def render_text(report: Report) -> str:
    """Each finding with excerpt, notes and help, then one line that counts them."""
    blocks = ["\n".join(_Drawing(report, found).lines()) for found in report.findings]
    if not blocks:
        return ""
    summary = str(report.counts)
    if report.omitted.total:
        summary += f" ({report.omitted} more than the {len(report.findings)} shown)"
    return "\n\n".join([*blocks, summary]) + "\n"


class _Drawing:
    """One finding on its way to lines of text."""

    def __init__(self, report: Report, found: Diagnostic) -> None:
        self.report = report
        self.found = found
        self.gutter = len(str(max(self._line_numbers())))

    def lines(self) -> Iterator[str]:
        beside, elsewhere, unplaced = self._sorted_notes()
        yield from self._header()
        yield self._place("-->", self.found.span)
        if self.found.severity is Severity.NOTE and self.found.help is None:
            return  # there is nothing to be done about it
        yield from self._excerpt(self.found.span, "^", beside)
        for note, span in elsewhere:
            yield self._place(":::", span)
            yield from self._excerpt(span, "-", [Note(note.message, span)])
        for note in unplaced:
            place = f" ({_address(note.span)})" if note.span is not None else ""
            yield from self._remark("note", note.message + place)
        if self.found.help is not None:
            yield from self._remark("help", self.found.help)
        elif self.found.fix is not None:
            yield from self._remark("fix", self.found.fix.description)

    def _sorted_notes(self) -> tuple[list[Note], list[tuple[Note, Span]], list[Note]]:
        """Notes on the finding's own line, notes at another place with a source, and the others."""
        beside: list[Note] = []
        elsewhere: list[tuple[Note, Span]] = []
        unplaced: list[Note] = []
        own = self.found.span
        for note in self.found.notes:
            span = note.span
            if span is None or self.report.line(span.file, span.start.line) is None:
                unplaced.append(note)
            elif span == own or (
                span.file == own.file and span.start.line == span.end.line == own.start.line == own.end.line
            ):
                beside.append(note)
            else:
                elsewhere.append((note, span))
        return beside, elsewhere, unplaced

    def _line_numbers(self) -> list[int]:
        spans = [self.found.span, *(note.span for note in self.found.notes if note.span is not None)]
        return [span.end.line for span in spans if span.file in self.report.lines] or [1]

    def _header(self) -> Iterator[str]:
        word = f"{self.found.severity}[{self.found.code}]"
        room = self.report.width and max(self.report.width - len(word) - 2, _NARROWEST_LABEL)
        for number, line in enumerate(wrap(self.found.message, room)):
            front = (
                f"{self._paint(word, _BOLD[self.found.severity])}: " if number == 0 else " " * (len(word) + 2)
            )
            yield front + self._paint(line, _STRONG)

    def _place(self, arrow: str, span: Span) -> str:
        return " " * self.gutter + self._paint(arrow, _FRAME) + " " + _address(span)

    def _excerpt(self, span: Span, sign: str, beside: list[Note]) -> Iterator[str]:
        """The lines of a span, underlined by `sign`; a note on the whole span becomes its label."""
        numbers = self._numbers(span)
        if not numbers:
            return
        yield self._framed("")
        labels = [note.message for note in beside if note.span == span]
        label = "; ".join(labels)
        for number in numbers:
            if number is None:
                yield self._paint("." * max(self.gutter, 3), _FRAME)
                continue
            text = self.report.line(span.file, number) or ""
            if number != span.start.line and not text.strip():
                yield self._paint(f"{number:>{self.gutter}} |", _FRAME)  # nothing there to underline
                continue
            last = number == numbers[-1]
            marks = [_mark(span, number, text, sign, label if last else "")]
            marks += [
                _mark(note.span, number, text, "-", note.message)
                for note in beside
                if note.span is not None and note.span != span
            ]
            yield from self._line(number, text, marks)

    def _numbers(self, span: Span) -> list[int | None]:
        """The numbers of the lines to show, None for those left out in the middle."""
        first, last = span.start.line, max(span.end.line, span.start.line)
        if last > first and span.end.column <= 1:
            last -= 1  # `end` is exclusive: nothing of that line belongs to the span
        shown = range(first, min(last, first + _SHOWN_LINES - 1) + 1)
        numbers: list[int | None] = [n for n in shown if self.report.line(span.file, n) is not None]
        if numbers and last - first >= _SHOWN_LINES and self.report.line(span.file, last) is not None:
            numbers[_SHOWN_LINES - 2 :] = [None, last]
        return numbers

    def _line(self, number: int, text: str, marks: list[_Mark]) -> Iterator[str]:
        room = self.report.width and max(self.report.width - self.gutter - 3, _NARROWEST_LABEL)
        shown, _, _ = clip(text, marks[0].start, marks[0].end, room)
        yield self._paint(f"{number:>{self.gutter}} |", _FRAME) + (f" {shown}" if shown else "")
        for mark in marks:
            again, offset, length = clip(text, mark.start, mark.end, room)
            if again != shown:
                # The line was cut around the first mark and this one fell outside.
                yield from self._remark("note", mark.label)
                continue
            colour = _BOLD[self.found.severity] if mark.sign == "^" else _FRAME
            underline = " " * offset + self._paint(mark.sign * length, colour)
            yield from self._labelled(underline, offset + length, mark, room, colour)

    def _labelled(self, underline: str, used: int, mark: _Mark, room: int, colour: str) -> Iterator[str]:
        """An underline with its label beside it, or below it where that is too narrow."""
        label = mark.label
        if not label:
            yield self._framed(underline)
        elif not room or used + 1 + width_of(label) <= room:
            yield self._framed(f"{underline} {self._paint(label, colour)}")
        else:
            yield self._framed(underline)
            begin = len(underline) - len(underline.lstrip(" "))
            begin = max(0, min(begin, room - width_of(label)))
            for line in wrap(label, room - begin):
                yield self._framed(" " * begin + self._paint(line, colour))

    def _framed(self, text: str) -> str:
        bar = " " * (self.gutter + 1) + self._paint("|", _FRAME)
        return f"{bar} {text}" if text else bar

    def _remark(self, word: str, text: str) -> Iterator[str]:
        front = " " * (self.gutter + 1) + self._paint("=", _FRAME) + f" {self._paint(word, _STRONG)}: "
        indent = self.gutter + 5 + len(word)
        room = self.report.width and max(self.report.width - indent, _NARROWEST_LABEL)
        for number, line in enumerate(wrap(text, room)):
            yield (front if number == 0 else " " * indent) + line

    def _paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.report.colour and text else text


def _address(span: Span) -> str:
    return f"{span.file}:{span.start.line}:{span.start.column}"


def _mark(span: Span, number: int, text: str, sign: str, label: str) -> _Mark:
    """The part of a span that lies on one line. A middle line is underlined from its first letter."""
    if number == span.start.line:
        start = max(span.start.column - 1, 0)
    else:
        start = len(text) - len(text.lstrip())
    end = span.end.column - 1 if number >= span.end.line else len(text.rstrip())
    return _Mark(start, max(end, start + 1), sign, label)
