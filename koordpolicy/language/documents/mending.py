"""Documents with a fault in their YAML, read without the lines that it spoils, so that one slip does not hide the rest."""

import re

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents.build import build
from koordpolicy.language.documents.faults import SyntaxFault, TooLarge
from koordpolicy.language.documents.quick import quick
from koordpolicy.language.documents.text import Lines
from koordpolicy.language.documents.tree import Place

MAX_FAULTS = 5
"""How many faults of one document are told. Each costs another reading."""

_LONGEST = 50_000
"""Characters of a document that is read again."""

_OPENED = ("flow mapping", "flow sequence", "quoted scalar", "simple key")
"""Constructs that spoil all up to where the library gives up: the line to leave out is that where they begin."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_CONTENT = re.compile(r"[^\r\n]")
_CONTENT_LINE = re.compile(r"\s*[^\r\n]*")
_WORD = re.compile(r" *([A-Za-z_][\w.-]*) *(?:#[^\r\n]*)?(?=\r|\n)")


def mended(
    lines: Lines, base: int, text: str, fault: SyntaxFault, found: Diagnostics
) -> tuple[Place | None, list[SyntaxFault]]:
    """The root of a document without what its faults spoil, and further faults; no root where nothing sensible is left.

    `text` begins at offset `base` of the file and cannot be read because of `fault`, which has been reported.
    """
    more: list[SyntaxFault] = []
    if len(text) > _LONGEST:
        return None, more
    for _ in range(MAX_FAULTS):
        tabbed = "\t" in text[_line_start(text, fault.offset) : fault.offset + 1]
        text, end = _without(text, fault)
        quiet = Diagnostics()
        try:
            root = quick(text, base) or build(lines, base, text, quiet)
        except TooLarge:
            return None, more
        except SyntaxFault as another:
            spoilt = tabbed and another.offset < _line_end(text, end)  # how deep a tab is nobody knows
            if another.offset < end or spoilt:  # what was left out has spoilt this, too
                return None, more
            more.append(another)
            fault = another
            continue
        found.extend(quiet)
        return root, more
    return None, more


def at_cause(text: str, fault: SyntaxFault) -> SyntaxFault:
    """The fault at the place to look at.

    The library takes a word without `:` for the beginning of the next line's key, and a template for a mapping.
    """
    start = _line_start(text, min(fault.offset, max(len(text) - 1, 0)))
    before = _line_start(text, start - 1) if start else 0
    template = text.find("{{", before, start)
    if template >= 0 and "{{" not in text[start : _belonging(text, start)]:
        return SyntaxFault(fault.problem, template)
    if "could not find expected ':'" in fault.problem and fault.context_offset is not None:
        return SyntaxFault(fault.problem, fault.context_offset, fault.context)
    word = _WORD.match(text, before)
    if "mapping values" not in fault.problem or word is None or word.end() >= start:
        return fault
    if _depth(text[before:start]) > _depth(text[start:]):
        return fault
    return SyntaxFault("could not find expected ':'", word.start(1))


def _without(text: str, fault: SyntaxFault) -> tuple[str, int]:
    """The text with blanks in place of the line that a fault spoils and of those that belong to it, and where they end."""
    at = fault.offset
    if fault.context_offset is not None and any(one in fault.context for one in _OPENED):
        at = fault.context_offset
    start = _line_start(text, min(at, max(len(text) - 1, 0)))
    end = _belonging(text, start)
    return text[:start] + _CONTENT.sub(" ", text[start:end]) + text[end:], end


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> int:
    """The end of the first line from `at` on that holds something."""
    rest = text[at:]
    first = _CONTENT_LINE.match(rest)
    return at + (first.end() if first else len(rest))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _belonging(text: str, start: int) -> int:
    """The end of the line at `start` and of the deeper ones below it."""
    first = _LINE.match(text, start)
    end = first.end() if first else len(text)
    depth = _depth(text[start:])
    if "\t" in text[start : start + depth + 1]:
        return end  # how deep a tab is nobody knows
    while end < len(text):
        line = _LINE.match(text, end)
        assert line is not None
        if line.group().strip() and _depth(line.group()) <= depth:
            break
        end = line.end()
    return end
