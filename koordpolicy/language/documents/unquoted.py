"""Expressions without quotes that YAML takes apart: where one stands, and how it is quoted."""

import re
from dataclasses import dataclass
from typing import Final

_KEY: Final = re.compile(r"(?<![\w'\"-])(?:cel|condition|expression|where):[ ]+(?=[^\s|>&*#])")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"\\]*\"")
_PAIRS: Final = {"}": "{", "]": "[", ")": "("}


@dataclass(frozen=True, slots=True)
class Unquoted:
    """An expression at `start:end` of a text, and the same in quotes."""

    start: int
    end: int
    quoted: str


def unquoted(text: str, at: int) -> Unquoted | None:
    """The expression without quotes that a YAML fault at offset `at` lies in, if it lies in one. Only that line is read."""
    first = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    found = re.compile(r"[^\r\n]*").match(text, first)
    line = found.group() if found else ""
    keys = [key for key in _KEY.finditer(line) if first + key.end() <= at]
    if not keys or "{{" in line:
        return None
    start = keys[0].end()
    end = _end(line, start, flow=_opens(line[: keys[0].start()]))
    if end is None or not first + start <= at <= first + end:
        return None
    if _QUOTED.match(line, start, min(end, at - first + 1)) is None and line[start] in "'\"":
        return None  # what is wrong is within the quotes
    written = line[start:end]
    single = '"' in written or "\\" in written
    quoted = "'" + written.replace("'", "''") + "'" if single else f'"{written}"'
    return Unquoted(first + start, first + end, quoted)


def _opens(before: str) -> bool:
    """Whether a key stands within braces that begin on its line."""
    return before.count("{") > before.count("}")


def _end(line: str, start: int, *, flow: bool) -> int | None:
    """Where the expression ends: at the brace that closes what it stands in, or with its line; None where that is unclear."""
    open_: list[str] = []
    quote = ""
    for at in range(start, len(line)):
        char = line[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            open_.append(char)
        elif char in _PAIRS:
            if not open_:
                return _trimmed(line, start, at) if flow and char == "}" else None
            if open_.pop() != _PAIRS[char]:
                return None
        elif char == "," and flow and not open_:
            return _trimmed(line, start, at)
        elif char == "#" and line[at - 1].isspace():
            return None if flow or open_ else _trimmed(line, start, at)
    return None if flow or quote or open_ else _trimmed(line, start, len(line))


def _trimmed(line: str, start: int, end: int) -> int | None:
    length = len(line[start:end].rstrip())
    return start + length if length else None
