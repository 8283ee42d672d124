"""Where each line of a document goes: block structure decides, the lines of a value move along."""

from bisect import bisect_right
from dataclasses import dataclass

from koordpolicy.language.documents.tree import Place
from koordpolicy.language.format.flow import tidy

STEP = 2

Level = tuple[int, int]
"""The column of a block before and after."""


class Unmovable(Exception):
    """The document is laid out in a way that the formatter leaves alone."""


@dataclass(slots=True)
class Head:
    """A line that begins a key, a list element, or several of these: `- - a: b`.

    `text` is how it will read, `levels` are the blocks it belongs to, innermost first. `key` is its
    key when the line is one of the document's own keys.
    """

    text: str
    levels: tuple[Level, ...]
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Inner:
    """A line within a value: it moves by `delta`, not left of `floor`. In a `block` space counts."""

    delta: int
    floor: int
    block: bool = False

    def moved(self, line: str) -> str:
        """The line in its new place."""
        content = line.lstrip(" ")
        column = len(line) - len(content) + self.delta
        if not content:
            return (
                " " * (column - self.floor) + " " * self.floor if self.block and column > self.floor else ""
            )
        moved = " " * max(column, self.floor) + content
        return moved if self.block else moved.rstrip(" ")


class LinePlan:
    """The lines of a document by number from 0: `heads` begin something, `inner` ones go on with it.

    `text` has no marker and no carriage returns. Raises `Unmovable`.
    """

    def __init__(self, text: str, root: Place) -> None:
        self.text = text
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.heads: dict[int, Head] = {}
        self.inner: dict[int, Inner] = {}
        self._prefixes: dict[int, tuple[int, str]] = {}
        if not self._is_block(root) or root.keys is None:
            raise Unmovable
        self._mapping(root, 0, ())

    def line(self, offset: int) -> int:
        """The number of the line that an offset stands in."""
        return bisect_right(self.starts, offset) - 1

    def _column(self, offset: int) -> int:
        return offset - self.starts[self.line(offset)]

    def _end_of_line(self, number: int) -> int:
        return min(self.starts[number + 1] - 1, len(self.text))

    def _is_block(self, place: Place) -> bool:
        return place.children is not None and self.text[place.start : place.start + 1] not in ("{", "[")

    def _mapping(self, place: Place, indent: int, outer: tuple[Level, ...]) -> None:
        """A block mapping whose keys go into column `indent`."""
        assert place.keys is not None and isinstance(place.children, dict)
        entries = [(place.keys[name], child) for name, child in place.children.items()]
        own = [entry for entry in entries if place.start <= entry[0].start < place.end] + list(place.merges)
        for key, value in own:
            line = self.line(key.start)
            prefix = self._open(line, key.start, indent)
            colon = self.text.find(":", key.end)
            if self.text[key.end : colon].strip(" ") or colon < 0:
                raise Unmovable
            levels = ((self._column(key.start), indent), *outer)
            head = self.text[key.start : key.end] + ":"
            self.heads[line] = Head(
                prefix + self._with_value(head, colon + 1, value, line),
                levels,
                str(key.data) if not outer else None,
            )
            self._below(value, line, levels)

    def _sequence(self, place: Place, indent: int, outer: tuple[Level, ...]) -> None:
        """A block list whose dashes go into column `indent`."""
        assert isinstance(place.children, list)
        at = place.start
        for element in place.children:
            dash = self._next_dash(at)
            line = self.line(dash)
            prefix = self._open(line, dash, indent)
            levels = ((self._column(dash), indent), *outer)
            if self._is_block(element) and self.line(element.start) == line and element.origin is None:
                if self.text[dash + 1 : element.start].strip(" "):
                    raise Unmovable
                self._prefixes[line] = (element.start, prefix + "- ")
            else:
                self.heads[line] = Head(prefix + self._with_value("-", dash + 1, element, line), levels)
            self._below(element, line, levels)
            at = max(element.text_end or element.end, dash + 1)

    def _next_dash(self, at: int) -> int:
        """The dash of the next element: only space and comments stand before it."""
        while at < len(self.text) and self.text[at] != "-":
            if self.text[at] == "#":
                at = self._end_of_line(self.line(at))
            elif self.text[at] not in " \n":
                raise Unmovable
            at += 1
        if at >= len(self.text):
            raise Unmovable
        return at

    def _open(self, line: int, offset: int, indent: int) -> str:
        """What goes before the text at `offset`, which must be the first of its line after dashes."""
        begun, prefix = self._prefixes.pop(line, (None, " " * indent))
        if begun is None:
            if line in self.heads or self.text[self.starts[line] : offset].strip(" "):
                raise Unmovable
        elif begun != offset:
            raise Unmovable
        return prefix

    def _with_value(self, head: str, after: int, value: Place, line: int) -> str:
        """A key or dash with what follows it on its line, one space between."""
        end = self._end_of_line(line)
        rest = self.text[after:end]
        tail = rest.strip(" ")
        if not tail:
            return head
        if tail.startswith("#"):  # a comment keeps its distance, which often aligns it with others
            return head + rest.rstrip(" ")
        collection = value.children is not None and value.origin is None and not self._is_block(value)
        if collection and after <= value.start < end and value.end <= end:
            shown = tidy(self.text, value)
            if shown is not None:
                before = self.text[after : value.start].strip(" ")
                following = self.text[value.end : end].rstrip(" ")
                tail = (before + " " if before else "") + shown + following
        return f"{head} {tail}"

    def _below(self, value: Place, line: int, levels: tuple[Level, ...]) -> None:
        """The lines that belong to a value whose key or dash stands in line `line`."""
        if value.origin is not None:
            return
        indent = levels[0][1] + STEP
        if self._is_block(value):
            if value.keys is not None:
                self._mapping(value, indent, levels)
            else:
                self._sequence(value, indent, levels)
            return
        first = self.line(value.start)
        last = self.line(max((value.text_end or value.end) - 1, value.start))
        if value.style in ("|", ">"):
            self._block_scalar(value, first, last, levels[0])
            return
        delta = levels[0][1] - levels[0][0]
        if first != line:  # the value begins on a line of its own
            delta = indent - self._column(value.start)
        floor = indent if value.children is None else levels[0][1]
        for number in range(first if first != line else line + 1, last + 1):
            self.inner[number] = Inner(delta, floor)

    def _block_scalar(self, value: Place, first: int, last: int, level: Level) -> None:
        """The text of a literal or folded block, one step right of its key or dash."""
        header = self.text[value.start : self._end_of_line(first)].split(" ")[0]
        keeps_end = "+" in header
        explicit = next((int(character) for character in header if character.isdigit()), 0)
        lines = [self.text[self.starts[at] : self._end_of_line(at)] for at in range(first + 1, last + 1)]
        while lines and not keeps_end and not lines[-1].strip(" "):
            lines.pop()  # empty lines after the text are no part of it
        column = next(
            (len(line) - len(line.lstrip(" ")) for line in lines if line.strip(" ")), level[0] + STEP
        )
        if explicit:
            column = level[0] + explicit
        target = level[1] + (explicit or STEP)
        for at in range(first + 1, first + 1 + len(lines)):
            self.inner[at] = Inner(target - column, target, block=True)
