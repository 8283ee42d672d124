"""The door to the YAML library: text becomes a stream of small events.

Everything else in the project that knows YAML knows it through these events (`fmt` alone uses the
library's round-trip writer).
"""

import re
from collections.abc import Iterator

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

__all__ = [
    "AliasEvent",
    "MappingEndEvent",
    "MappingStartEvent",
    "ScalarEvent",
    "SequenceEndEvent",
    "SequenceStartEvent",
    "SyntaxFault",
    "events",
    "split",
]

_MARKER = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_BEYOND = re.compile(r"\\U(?!000|0010)[0-9a-fA-F]{8}")
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)


class SyntaxFault(Exception):
    """The text is not YAML. Offsets are relative to the text given."""

    def __init__(
        self, problem: str, offset: int, context: str = "", context_offset: int | None = None
    ) -> None:
        super().__init__(problem)
        self.problem, self.offset = problem, offset
        self.context, self.context_offset = context, context_offset


def split(text: str) -> Iterator[tuple[int, str]]:
    """Cut a file into its documents: offset and text of each.

    A line that begins with `---` or `...` ends a document wherever it stands, scalars included, so
    the cut needs no parsing and a fault in one document stays there. Directives stay with the
    document that follows them.
    """
    start = 0
    for found in _MARKER.finditer(text):
        if found.group() == "---" and (
            found.start() == start or _only_directives(text[start : found.start()])
        ):
            continue
        yield start, text[start : found.start()]
        start = found.end() if found.group() == "..." else found.start()
    yield start, text[start:]


def _only_directives(text: str) -> bool:
    return bool(_DIRECTIVE.search(text)) and all(
        not line or line[0] in "%#" or line.isspace() for line in text.splitlines()
    )


def events(text: str) -> Iterator[object]:
    """The events of one document. Raises `SyntaxFault`."""
    after = 0
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            after = event.end_mark.index
            yield event
    except (ValueError, OverflowError):
        # The library makes characters and numbers of whatever digits stand there.
        beyond = _BEYOND.search(text, after)
        if beyond is None:
            raise SyntaxFault("found a number with too many digits", after) from None
        raise SyntaxFault("found a character beyond U+10FFFF", beyond.start()) from None
    except MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        context = fault.context_mark
        if context and str(fault.problem).startswith("found unexpected") and "quoted" in str(fault.context):
            # A quote that is never closed ends with the file; where it begins is the place to look.
            raise SyntaxFault(str(fault.problem), context.index) from None
        raise SyntaxFault(
            str(fault.problem or fault.context or "a fault"),
            mark.index if mark else 0,
            str(fault.context or ""),
            context.index if context else None,
        ) from None
    except YAMLError as fault:
        raise SyntaxFault(str(fault), 0) from None
