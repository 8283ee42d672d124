"""Places of findings, in code points from 1, and those of the protocol: lines from 0, columns in units of an encoding."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from lsprotocol import types

from koordpolicy.diagnostics import Position, Span
from koordpolicy.language.documents import Lines

_WIDTHS: Mapping[str, Callable[[str], int]] = MappingProxyType(
    {
        "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
        "utf-16": lambda text: len(text) + sum(letter > "\uffff" for letter in text),
        "utf-32": len,
    }
)


class Coordinates:
    """Both kinds of places, for the encoding that client and server agreed on (UTF-16 where they said nothing)."""

    def __init__(self, encoding: str = "utf-16") -> None:
        self._width = _WIDTHS.get(encoding, _WIDTHS["utf-16"])

    def position(self, lines: Lines, place: Position) -> types.Position:
        """Where a place is for the client."""
        start = lines.offset(Position(place.line, 1))
        return types.Position(place.line - 1, self._width(lines.text[start : lines.offset(place)]))

    def range(self, lines: Lines, span: Span) -> types.Range:
        """The range of a span. Its end is never before its start."""
        return types.Range(self.position(lines, span.start), self.position(lines, span.end))

    def between(self, lines: Lines, start: int, end: int) -> types.Range:
        """The range of `start:end`, offsets in code points."""
        return self.range(lines, lines.exactly(start, end))

    def offset(self, lines: Lines, position: types.Position) -> int:
        """The offset in code points of the client's place; one beyond its line is that line's end, one before all the beginning."""
        start = lines.offset(Position(max(position.line, 0) + 1, 1))
        line = lines.line(start)
        units = 0
        for at, letter in enumerate(line):
            if units >= position.character:
                return start + at
            units += self._width(letter)
        return start + len(line)

    def whole(self, lines: Lines) -> types.Range:
        """All of a text."""
        return self.between(lines, 0, len(lines.text))
