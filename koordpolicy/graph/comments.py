"""Comments of expressions that take in lines below them: where YAML joins lines, a comment goes on."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from koordpolicy.diagnostics import Fix
from koordpolicy.language.cel.lexer import comments
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.documents import TextMap

CODE: Final = "KP220"
_FOLDED: Final = ">"
_MOST: Final = 100
"""Comments of one expression that are looked at; what stands below later ones counts as lost, too."""


@dataclass(frozen=True, slots=True)
class LostLines:
    """The comment at `start:end` of an expression takes in what stands below it.

    `meant` is the expression without such comments, of the same length.
    """

    start: int
    end: int
    meant: str
    fix: Fix | None

    @property
    def help(self) -> str:
        """What keeps the lines."""
        block = (
            "begin the block with `|`" if self.fix is not None else "write it as a block that begins with `|`"
        )
        return f"{block}, which keeps lines as they are, or remove the comment"


def lost_lines(source: str, text: TextMap | None) -> LostLines | None:
    """The first comment of an expression that text of a later line of the file falls into, and what was meant."""
    if text is None or "//" not in source:
        return None
    meant, first = source, None
    for _ in range(_MOST):
        found = _swallowing(meant, text)
        if found is None:
            break
        start, end, after = found
        first = first or (start, end)
        meant = meant[:start] + " " * (after - start) + meant[after:]
    return None if first is None else LostLines(*first, meant, _kept(text))


def _swallowing(source: str, text: TextMap) -> tuple[int, int, int] | None:
    """Where a comment begins, where its own line ends, and where that begins which it takes in."""
    try:
        found = comments(source)
    except SyntaxProblem:  # too long, which is told
        return None
    for start, end in found:
        own_end = _line_end(text, start, end)
        at = own_end
        while at < end and (source[at].isspace() or source.startswith("//", at)):
            at = at + 1 if source[at].isspace() else _line_end(text, at, end)
        if at < end:
            return start, own_end, at
    return None


def _line_end(text: TextMap, start: int, end: int) -> int:
    """Where the line of the file ends that the character at `start` stands on, `end` at most."""
    offset = text.offset(start)
    after = offset + len(text.lines.line(offset))
    return start + bisect_left(range(start, end), after, key=text.offset)


def _kept(text: TextMap) -> Fix | None:
    """The edit that makes a folded block keep its lines."""
    if text.style != _FOLDED:
        return None
    return Fix("write `|`", text.lines.exactly(text.start, text.start + 1), "|")
