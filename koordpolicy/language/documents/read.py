"""Read a file into documents, reporting everything that is wrong with its YAML."""

import re

from koordpolicy.diagnostics import Diagnostics, Fix, Note
from koordpolicy.language.documents.document import Document, Positions
from koordpolicy.language.documents.faults import SyntaxFault, TooLarge
from koordpolicy.language.documents.quick import quick
from koordpolicy.language.documents.split import split
from koordpolicy.language.documents.text import Lines
from koordpolicy.language.documents.tree import Place
from koordpolicy.language.documents.unquoted import hidden_end, unquoted, unquoted_key
from koordpolicy.language.documents.wording import (
    HIDDEN_END,
    RENDER_FIRST,
    TEMPLATE,
    explain_fault,
    template_in,
)

MAX_CHARACTERS = 1_000_000
"""The longest file that is read; a larger one is no policy."""

_FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_EMPTY = re.compile(r"(?:---(?=\s|\Z))?(?:\s|(?<=\s)#[^\r\n]*+|\A#[^\r\n]*+)*+")
"""A marker, space and comments. Nothing is tried twice, since a comment may hold another `#`."""


def read_documents(file: str, text: str, found: Diagnostics, *, mend: bool = False) -> list[Document]:
    """The documents of one file, in order.

    `file` is the path as findings shall name it. A document with a fault is reported and left out
    (or kept with a stand-in for the faulty part where the rest still makes sense); the others of
    the file are read all the same. Empty documents are skipped. With `mend`, one whose YAML has a fault is
    kept as `mended`, without the lines that it spoils, for the rest to be checked.
    """
    lines = Lines(file, text)
    if len(text) > MAX_CHARACTERS:
        _refuse(lines, 0, "file", len(text), found)
        return []
    base = 1 if text.startswith("\ufeff") else 0
    if not is_text(lines, base, found):
        return []
    documents: list[Document] = []
    for start, part in split(text[base:]):
        document = read_one(lines, base + start, part, len(documents), found, mend=mend)
        if document:
            documents.append(document)
    return documents


def place_of(lines: Lines, base: int, text: str, found: Diagnostics) -> Place | None:
    """The root of one document, whose text begins at offset `base` of the file; `None` where it is empty.

    Raises `SyntaxFault` (offsets relative to `text`) and `TooLarge`.
    """
    root = quick(text, base)
    return _built(lines, base, text, found) if root is None else root


def _built(lines: Lines, base: int, text: str, found: Diagnostics) -> Place | None:
    """As `place_of`, for a document that is not laid out plainly."""
    from koordpolicy.language.documents.build import build  # noqa: PLC0415  # the YAML library, which few documents need

    return build(lines, base, text, found)


def is_text(lines: Lines, base: int, found: Diagnostics) -> bool:
    """Whether all of a file from offset `base` may stand in YAML; KP002 otherwise."""
    bad = _FORBIDDEN.search(lines.text, base)
    if bad:
        found.add(
            "KP002",
            lines.span(bad.start(), bad.end()),
            f"the character U+{ord(bad.group()):04X} may not stand in YAML",
            help=f'write it as an escape in a double-quoted string: "\\u{ord(bad.group()):04X}"',
        )
    return bad is None


def _refuse(lines: Lines, base: int, what: str, length: int, found: Diagnostics) -> None:
    found.add(
        "KP004",
        lines.span(base, base + 1),
        f"the {what} has {length:,} characters, more than {MAX_CHARACTERS:,}",
        help="split it into several files",
    )


def read_one(
    lines: Lines, base: int, text: str, index: int, found: Diagnostics, *, mend: bool = False
) -> Document | None:
    """One document of the file, whose text begins at offset `base`; None where it is empty, or has been reported."""
    if len(text) > MAX_CHARACTERS:
        _refuse(lines, base, "document", len(text), found)
        return None
    if _EMPTY.fullmatch(text):
        return None
    root = quick(text, base)
    again = None if root is None else (base, base + len(text))
    try:
        if root is None:
            root = _built(lines, base, text, found)
    except SyntaxFault as raised:
        from koordpolicy.language.documents.mending import at_cause, mended  # noqa: PLC0415  # as for `build`

        fault = at_cause(text, raised)
        template = _report(lines, base, text, fault, found)
        if not mend:
            return None
        root, more = mended(lines, base, text, fault, found)
        for another in more:
            template = _report(lines, base, text, another, found, template_told=template)
        named = isinstance(root.data, dict) and {"apiVersion", "kind"} <= root.data.keys() if root else False
        return Document.of(index, Positions(lines, root), mended=True) if root and named else None
    except TooLarge as fault:
        found.add("KP004", lines.span(fault.offset, fault.offset + 1), fault.message, help=fault.help)
        return None
    if root is None:
        return None
    if not isinstance(root.data, dict):
        found.add(
            "KP005",
            lines.span(root.start, root.end),
            f"a policy document is a mapping, this is {_described(root.data)}",
            help="begin with `apiVersion:`, `kind:`, `metadata:` and `spec:`",
        )
        return None
    return Document.of(index, Positions(lines, root, again))


def _report(
    lines: Lines, base: int, text: str, fault: SyntaxFault, found: Diagnostics, *, template_told: bool = False
) -> bool:
    """KP002 where the library has given up. Gives whether a template was told of, which is done once."""
    message, help, note = explain_fault(fault)
    at = base + min(fault.offset, max(len(text) - 1, 0))
    template = template_in(lines.line_at(at))
    if template is not None:
        start = lines.line_start(at) + template
        if not template_told:
            found.add("KP002", lines.span(start, start + 2), TEMPLATE, help=RENDER_FIRST)
        return True
    for what, find in (("expression", unquoted), ("key", unquoted_key)):
        taken = find(text, fault.offset)
        if taken is not None:
            stretch = lines.exactly(base + taken.start, base + taken.end)
            found.add(
                "KP002",
                stretch,
                f"YAML cannot read this {what} without quotes",
                help=f"quote it: `{taken.quoted}`",
                fix=Fix("quote it", stretch, taken.quoted, safe=True),
            )
            return template_told
    notes: tuple[Note, ...] = ()
    if note and fault.context_offset is not None:
        notes = (Note(note, lines.span(base + fault.context_offset, base + fault.context_offset + 1)),)
    comment = hidden_end(text, fault)
    if comment is not None:
        at = base + comment
        message, help = HIDDEN_END
    found.add("KP002", lines.span(at, at + 1), message, help=help, notes=notes)
    return template_told


def _described(data: object) -> str:
    if isinstance(data, list):
        return "a list"
    return "a string" if isinstance(data, str) else f"`{data}`"
