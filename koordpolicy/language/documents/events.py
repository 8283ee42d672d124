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
from ruamel.yaml.scanner import Scanner

from koordpolicy.language.documents.faults import MAX_DEPTH, SyntaxFault

__all__ = [
    "AliasEvent",
    "MappingEndEvent",
    "MappingStartEvent",
    "ScalarEvent",
    "SequenceEndEvent",
    "SequenceStartEvent",
    "events",
]

_BEYOND = re.compile(r"\\U(?!000|0010)[0-9a-fA-F]{8}")


class _Scanner(Scanner):
    """The library's, which looks through what could be a key at each open bracket, for each character: at those that are too
    deep for a document to be read there is nothing to look for.
    """

    def save_possible_simple_key(self) -> None:
        if self.flow_level <= MAX_DEPTH:
            super().save_possible_simple_key()


def events(text: str) -> Iterator[object]:
    """The events of one document. Raises `SyntaxFault`."""
    after = 0
    try:
        library = YAML(typ="safe", pure=True)
        library.Scanner = _Scanner
        for event in library.parse(text):
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
