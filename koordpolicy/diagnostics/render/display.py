"""How lines of a policy file appear on a terminal: each character in as many columns as it really takes.

Carets must stand under the characters they speak of, so what may not be shown as it is has a stand-in of one
column here, where messages and names have an escape (`diagnostics/escaping.py`).
"""

import unicodedata
from collections.abc import Iterator

from koordpolicy.diagnostics.escaping import is_plain

_TAB = "    "
_UNSHOWABLE = "\N{REPLACEMENT CHARACTER}"
_ELLIPSIS = "…"
_REACH = 4
"""Lines' widths to either side within which what is shown is found, even where many characters take no column."""


def cells(text: str) -> list[tuple[str, int]]:
    """Each character of `text` as it is drawn, with its width in columns."""
    return [_cell(character) for character in text]


def width_of(text: str) -> int:
    """Columns that a text takes on one line."""
    return sum(width for _, width in cells(text))


def _cell(character: str) -> tuple[str, int]:
    if " " <= character <= "~":
        return character, 1
    if character == "\t":
        return _TAB, len(_TAB)
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code), 1  # the picture of this control character
    if not is_plain(character):
        return _UNSHOWABLE, 1
    if unicodedata.category(character) in ("Mn", "Me"):
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, start: int, end: int, columns: int) -> tuple[str, int, int]:
    """A line cut to `columns`, with the place of its stretch `start`..`end` (code points, from 0) in it.

    Returns the text to draw, the columns before the stretch and the columns the stretch takes (at least 1).
    What had to be cut off is marked by an ellipsis. `columns` 0 cuts nothing.
    """
    start = min(start, len(text))
    from_, until = _around(start, len(text), columns)
    drawn = cells(text[from_:until])
    before = [0]
    for _, width in drawn:
        before.append(before[-1] + width)
    whole = len(drawn) == len(text)
    start, end = start - from_, min(max(end, start + 1) - from_, len(drawn))
    if whole and (not columns or before[-1] <= columns):
        return "".join(piece for piece, _ in drawn), before[start], max(1, before[end] - before[start])
    first, last = _window(before, start, end, max(columns, 8))
    left = _ELLIPSIS if from_ + first else ""
    right = _ELLIPSIS if from_ + last < len(text) else ""
    shown = left + "".join(piece for piece, _ in drawn[first:last]) + right
    offset = len(left) + before[start] - before[first]
    length = before[min(end, last)] - before[min(start, last)]
    return shown, offset, max(1, length)


def _around(start: int, length: int, columns: int) -> tuple[int, int]:
    """The part of a line that need be looked at: hundreds of findings may stand in one line of a million characters."""
    reach = _REACH * max(columns, 8) if columns else length
    return max(0, start - reach), min(length, start + reach)


def _window(before: list[int], start: int, end: int, columns: int) -> tuple[int, int]:
    """The characters `first`..`last` to show: the stretch, a little before it, and what follows it."""
    room = columns - 2  # an ellipsis on either side
    total = before[-1]
    stretch = min(before[end] - before[start], room)
    lead = min(before[start], max((room - stretch) // 2, room // 4))
    from_column = min(before[start] - lead, max(0, total - room))
    if from_column <= 1:
        from_column = 0
    first = next(index for index, column in enumerate(before) if column >= from_column)
    last = first
    while last < len(before) - 1 and before[last + 1] - before[first] <= room:
        last += 1
    return first, last


def wrap(text: str, columns: int) -> Iterator[str]:
    """The text in lines of at most `columns`, broken at spaces; its own line breaks and indents stay.

    A word wider than a line is never torn: it may be a path or an expression to copy.
    """
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))]
        current, used = "", 0
        for word in line.split():
            wide = width_of(word)
            if current and columns and used + 1 + wide > columns:
                yield current
                current, used = "", 0
            if current:
                current, used = f"{current} {word}", used + 1 + wide
            else:
                current, used = f"{indent}{word}", len(indent) + wide
        yield current
