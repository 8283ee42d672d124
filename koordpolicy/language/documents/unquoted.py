"""What YAML takes apart for want of quotes: expressions, keys with brackets, what `#` hides; and how it is quoted."""

import re
from dataclasses import dataclass
from typing import Final

from koordpolicy.language.documents.faults import SyntaxFault

_KEY: Final = re.compile(r"(?<![\w'\"-])(?:cel|condition|expression|where):[ ]+(?=[^\s|>&*#])")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"\\]*\"")
_PAIRS: Final = {"}": "{", "]": "[", ")": "("}
_BRACKETS: Final = re.compile(r"\[[^\[\]{},:\"'\s]*\][^\[\]{},:\"'\s]*(?=:(?:\s|$))")
_KEY_BEFORE: Final = re.compile(r"[^\[\]{},:\"'\s]+\Z")
_LONGEST_KEY: Final = 300
_FLOWS: Final = {"flow mapping": "}", "flow sequence": "]"}
_PLAIN_OR_QUOTED: Final = re.compile(r"'[^'\r\n]*'|\"(?:[^\"\\\r\n]|\\.)*\"|(?<=[\s])#[^\r\n]*")
_LONGEST_FLOW: Final = 5_000


@dataclass(frozen=True, slots=True)
class Unquoted:
    """An expression or a key at `start:end` of a text, and the same in quotes."""

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


def unquoted_key(text: str, at: int) -> Unquoted | None:
    """The key with brackets within braces, such as `scores[Own].value`, whose first bracket stands at a YAML fault."""
    bracket = _BRACKETS.match(text, at)
    before = _KEY_BEFORE.search(text, max(0, at - _LONGEST_KEY), at)
    if bracket is None or before is None:
        return None
    written = text[before.start() : bracket.end()]
    return Unquoted(before.start(), bracket.end(), f'"{written}"')


def hidden_end(text: str, fault: SyntaxFault) -> int | None:
    """Where a comment begins that has the bracket in it by which a mapping or list within brackets was to end."""
    end = next((sign for flow, sign in _FLOWS.items() if flow in fault.context), None)
    start = fault.context_offset
    if end is None or start is None or fault.offset - start > _LONGEST_FLOW:
        return None
    for part in _PLAIN_OR_QUOTED.finditer(text, start, fault.offset):
        if part.group().startswith("#") and end in part.group():
            return part.start()
    return None


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
