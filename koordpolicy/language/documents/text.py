"""From offsets in a decoded string back to the characters of the file."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from hashlib import sha256

from koordpolicy.diagnostics import Position, Span

_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028",
    "P": "\u2029",
}  # fmt: skip
HALF = re.compile("[\ud800-\udfff]")
"""A surrogate, which is no character by itself."""
PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_PROPERTY = re.compile(r"(?:[&!][^\s]*)(?:\s+|\Z)|#[^\r\n]*(?:\s+|\Z)")


class Lines:
    """The text of one file with its line starts, found when first asked for."""

    __slots__ = ("_digest", "_starts", "file", "text")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._starts: list[int] | None = None
        self._digest = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        if not self._digest:
            self._digest = sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()
        return self._digest

    def position(self, offset: int) -> Position:
        """Line and column of a code-point offset."""
        starts = self._line_starts()
        line = bisect_right(starts, offset)
        return Position(line, offset - starts[line - 1] + 1)

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            self._starts = [0, *(found.end() for found in _LINE_END.finditer(self.text))]
        return self._starts

    def offset(self, position: Position) -> int:
        """The code-point offset of a line and column; the text's end for one beyond it."""
        starts = self._line_starts()
        if position.line > len(starts):
            return len(self.text)
        return min(starts[position.line - 1] + position.column - 1, len(self.text))

    def line_start(self, offset: int) -> int:
        """Where the line of an offset begins."""
        starts = self._line_starts()
        return starts[bisect_right(starts, offset) - 1]

    def line_at(self, offset: int) -> str:
        """The line of an offset, without its break."""
        return self.line(self.line_start(offset))

    def line(self, start: int) -> str:
        """The text from an offset to the end of its line, without the break."""
        found = _LINE_END.search(self.text, start)
        return self.text[start : found.start() if found else len(self.text)]

    def exactly(self, start: int, end: int) -> Span:
        """The span of `start:end`, which may be empty: a place to insert at."""
        return Span(self.file, self.position(start), self.position(end))

    def span(self, start: int, end: int) -> Span:
        """The span of `start:end`, at least one character wide."""
        first = self.position(start)
        if end <= start + 1:  # at the end of a line too, where the next character is on the next one
            return Span(self.file, first, Position(first.line, first.column + 1))
        return Span(self.file, first, self.position(end))


@dataclass(slots=True)
class TextMap:
    """Where each character of a decoded scalar stands in its file.

    `start:end` is the scalar in the file, `style` as in `tree.Place`, `value` what YAML made of it.
    """

    lines: Lines
    start: int
    end: int
    style: str
    value: str
    _sources: list[int] | None = field(default=None, repr=False)

    def offset(self, index: int) -> int:
        """The file offset of the character at `index`; `len(value)` gives the end of the text."""
        sources = self._resolve()
        return sources[max(0, min(index, len(sources) - 1))]

    def position(self, index: int) -> Position:
        """The position in the file of the character at `index` of the string."""
        return self.lines.position(self.offset(index))

    def span(self, start: int, end: int) -> Span:
        """The stretch of the file that `value[start:end]` came from."""
        first = self.offset(start)
        if end <= start:
            return self.lines.span(first, first + 1)
        last = self.offset(end - 1)
        after = self.offset(end)
        # A fold or escape may put much between two characters; an ordinary one is one wide.
        character = self.value[end - 1 : end]
        plain = self.lines.text[last : last + 1] == character and character not in "'\\"
        width = 1 if plain else after - last
        return self.lines.span(first, last + max(1, width))

    def _resolve(self) -> list[int]:
        if self._sources is None:
            text, sources = decode(self.lines.text, self.start, self.end, self.style)
            if text != self.value:  # a scalar in a form this reader has no words for
                sources = [self.start] * (len(self.value) + 1)
            self._sources = sources
        return self._sources


def joined(text: str) -> str:
    """The text with one character for each pair of surrogates."""
    return PAIR.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text)


def decode(text: str, start: int, end: int, style: str) -> tuple[str, list[int]]:
    """Read the scalar at `text[start:end]` again, noting where each character came from.

    Gives the decoded string and one offset a character, plus the offset where it ends. `style` is as
    in `tree.Place`.
    """
    if style in ("|", ">"):
        return _block(text, start, end, folded=style == ">")
    if style:
        return _quoted(text, start + 1, end - 1, style)
    return _flow_lines(text, start, end)


def content_start(text: str, start: int, end: int) -> int:
    """The offset after anchors, tags and comments that stand before a node's content."""
    while start < end and (found := _PROPERTY.match(text, start, end)):
        start = found.end()
    return start


def _flow_lines(text: str, start: int, end: int) -> tuple[str, list[int]]:
    """A plain scalar: inner line breaks fold, space around them goes."""
    out = _Out()
    at = start
    while at < end:
        if text[at] in " \t\r\n":
            at = _space(text, at, end, out)
        else:
            out.add(text[at], at)
            at += 1
    return out.done(end)


def _quoted(text: str, start: int, end: int, quote: str) -> tuple[str, list[int]]:
    """A single- or double-quoted scalar between its quotes."""
    out = _Out()
    at = start
    while at < end:
        character = text[at]
        if character in " \t\r\n":
            at = _space(text, at, end, out, keep_trailing=True)
        elif quote == "'" and character == "'":
            out.add("'", at)
            at += 2
        elif quote == '"' and character == "\\":
            at = _escape(text, at, end, out)
        else:
            out.add(character, at)
            at += 1
    return out.done(end)


def _space(text: str, at: int, end: int, out: "_Out", keep_trailing: bool = False) -> int:
    """White space of a flow scalar: kept within a line, folded around line breaks."""
    first = first_break = at
    breaks = 0
    while at < end and text[at] in " \t\r\n":
        if text[at] in "\r\n":
            at += 2 if text.startswith("\r\n", at) else 1
            breaks += 1
            if breaks == 1:
                first_break = at - 1
        else:
            at += 1
    if not breaks:
        if at < end or keep_trailing:
            for offset in range(first, at):
                out.add(text[offset], offset)
        return at
    if breaks == 1:
        out.add(" ", first_break)
    else:
        for _ in range(breaks - 1):
            out.add("\n", first_break)
    return at


def _escape(text: str, at: int, end: int, out: "_Out") -> int:
    """One backslash escape of a double-quoted scalar; gives the offset after it."""
    code = text[at + 1 : at + 2]
    if code in _HEX_DIGITS:
        stop = at + 2 + _HEX_DIGITS[code]
        out.add(chr(int(text[at + 2 : stop], 16)), at)
        out.join()
        return stop
    if code in ("\r", "\n"):  # an escaped line break joins the lines, keeping further empty lines
        stop = at + (3 if text.startswith("\r\n", at + 1) else 2)
        while stop < end and text[stop] in " \t\r\n":
            if text[stop] in "\r\n":
                out.add("\n", stop)
                stop += 2 if text.startswith("\r\n", stop) else 1
            else:
                stop += 1
        return stop
    out.add(_ESCAPES.get(code, code), at)
    return at + 2


def _block(text: str, start: int, end: int, folded: bool) -> tuple[str, list[int]]:
    """A literal or folded block scalar, with its indentation and chomping indicators."""
    header = _LINE_END.search(text, start, end)
    if header is None:
        return "", [end]
    indicators = text[start + 1 : header.start()].split("#", maxsplit=1)[0]
    explicit = next((int(c) for c in indicators if c.isdigit()), None)
    lines = _block_lines(text, header.end(), end)
    indent = _parent_indent(text, start) + explicit if explicit else _found_indent(text, lines)
    out = _Out()
    pending: list[int] = []  # line breaks not yet written: where each stands
    previous_more = False
    begun = False
    last = header.end()
    for line_start, line_end in lines:
        content = min(line_start + indent, line_end)
        blank = text[line_start:line_end].strip(" ") == "" and line_end - line_start <= indent
        if blank:
            pending.append(line_end)
            continue
        more = text[content] in " \t"
        if folded and begun and not more and not previous_more:
            if len(pending) == 1:
                out.add(" ", pending[0])
            else:
                for offset in pending[:-1]:
                    out.add("\n", offset)
        else:
            for offset in pending:
                out.add("\n", offset)
        for offset in range(content, line_end):
            out.add(text[offset], offset)
        pending = [line_end]
        previous_more, begun, last = more, True, line_end
    if "+" in indicators:
        kept = pending
    else:
        kept = [] if "-" in indicators or not begun else pending[:1]
    kept = [offset for offset in kept if offset < len(text)]  # the last line may lack its break
    for offset in kept:
        out.add("\n", offset)
    return out.done(max([last, *kept]) if begun else end)


def _block_lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Start and end (without break) of the lines of `text[start:end]`."""
    lines = []
    at = start
    for found in _LINE_END.finditer(text, start, end):
        lines.append((at, found.start()))
        at = found.end()
    if at < end:
        lines.append((at, end))
    return lines


def _found_indent(text: str, lines: list[tuple[int, int]]) -> int:
    """The indentation of the first line with content; of the longest blank one when there is none."""
    longest = 0
    for start, end in lines:
        line = text[start:end]
        spaces = len(line) - len(line.lstrip(" "))
        if spaces < len(line):
            return spaces
        longest = max(longest, spaces)
    return longest


def _parent_indent(text: str, start: int) -> int:
    """The indentation of the block that a block scalar stands in.

    Compact forms (`- - key: |2`) put several levels on one line: every dash but the last key's
    column counts.
    """
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    at = line_start
    indent = -1
    while at < start:
        while at < start and text[at] == " ":
            at += 1
        if at < start and text[at] in "-?:" and text[at + 1 : at + 2] in (" ", "\t"):
            indent = at - line_start
            at += 1
            continue
        if at < start and text[at] not in "|>&!":
            indent = at - line_start
        break
    return max(indent, 0)


class _Out:
    """Characters written so far, each with the offset it came from."""

    __slots__ = ("characters", "sources")

    def __init__(self) -> None:
        self.characters: list[str] = []
        self.sources: list[int] = []

    def add(self, character: str, source: int) -> None:
        self.characters.append(character)
        self.sources.append(source)

    def join(self) -> None:
        """Make one character of two halves, as JSON writes what lies beyond U+FFFF."""
        pair = "".join(self.characters[-2:])
        if PAIR.fullmatch(pair):
            self.characters[-2:] = [joined(pair)]
            self.sources.pop()

    def done(self, end: int) -> tuple[str, list[int]]:
        self.sources.append(end)
        return "".join(self.characters), self.sources
