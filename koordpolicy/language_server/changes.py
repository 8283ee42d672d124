"""Changes that an editor can carry out: fixes of findings, new names, layout."""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.diagnostics import Diagnostic, Diagnostics, Fix, Position, Severity, Span
from koordpolicy.language.cel.syntax import KEYWORDS, RESERVED
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.documents import Lines
from koordpolicy.language.documents.edits import applied
from koordpolicy.language.format import format_text
from koordpolicy.language_server.bundles import Bundle, Snapshot
from koordpolicy.language_server.index import Mention, Name
from koordpolicy.runtime.policies.packs import OWN

_WORD: Final = "[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_FORMS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "document": (
            r"[a-z0-9A-Z](?:[-A-Za-z0-9.]*[A-Za-z0-9])?",
            "letters, digits, `-` and `.`",
        ),
        "item": (_WORD, "letters, digits, `-`, `_` and `.`"),
    }
)
_IDENTIFIER: Final = ("[A-Za-z_][A-Za-z0-9_]*", "letters, digits and `_`, and begins with no digit")
_READING: Final = ("KP0", "KP1")


class CannotRenameError(Exception):
    """A name cannot be changed; the message says why."""


def renameable(mention: Mention, snapshot: Snapshot) -> list[Mention]:
    """All places that a new name has to be written to. Raises `CannotRenameError`."""
    if mention.name.space == "decision":
        raise CannotRenameError("a decision is called after its document and field: rename those")
    same = [one for one in snapshot.mentions if one.name == mention.name]
    foreign = next((one for one in same if one.definition and one.unit.layer_name != OWN), None)
    if foreign is not None:
        raise CannotRenameError(f"`{mention.name.name}` is defined in the pack `{foreign.unit.layer_name}`")
    if not any(one.definition for one in same):
        raise CannotRenameError(f"`{mention.name.name}` is defined nowhere")
    unread = next((one for one in _errors(snapshot) if one.code.startswith(_READING)), None)
    if unread is not None:
        place = f"{unread.span.file}:{unread.span.start.line}"
        raise CannotRenameError(f"not every document can be read: mend {place} first")
    return same


def rename(
    mention: Mention, new: str, bundle: Bundle, snapshot: Snapshot, now: Timestamp
) -> dict[str, list[tuple[Span, str]]]:
    """The edits by file that give a name's mentions a new one, tried out. Raises `CannotRenameError`."""
    _check_form(mention.name, new)
    same = renameable(mention, snapshot)
    if any(one.name == Name(mention.name.space, mention.name.of, new) for one in snapshot.mentions):
        raise CannotRenameError(f"there is a {mention.name.space} `{new}` already")
    edits: dict[str, dict[Span, str]] = {}
    for one in same:
        span = _exactly(one, snapshot)
        if span is not None:
            edits.setdefault(span.file, {})[span] = new
    texts = dict(snapshot.texts)
    for file, own in edits.items():
        texts[file], _ = applied(
            Lines(file, texts[file]), [Fix("", span, text) for span, text in own.items()]
        )
    after = bundle.compile_texts(texts, now)
    before = {(one.code, one.message) for one in _errors(snapshot)}
    broken = next((one for one in _errors(after) if (one.code, one.message) not in before), None)
    if broken is not None and new not in broken.message:
        raise CannotRenameError(
            f"it would break {broken.span.file}:{broken.span.start.line}: {broken.message}"
        )
    if broken is not None and len(list(_errors(after))) > len(list(_errors(snapshot))):
        raise CannotRenameError(
            f"it would break {broken.span.file}:{broken.span.start.line}: {broken.message}"
        )
    return {file: sorted(own.items()) for file, own in edits.items()}


def _check_form(name: Name, new: str) -> None:
    pattern, words = _FORMS.get(name.space, _IDENTIFIER)
    if not re.fullmatch(pattern, new) or (name.space not in _FORMS and new in KEYWORDS | RESERVED):
        raise CannotRenameError(f"`{new}` is no name: it has {words}")


def _exactly(mention: Mention, snapshot: Snapshot) -> Span | None:
    """The characters of the name within a mention's place; None where it is written otherwise there."""
    lines = snapshot.lines(mention.span.file)
    if lines is None:
        return None
    start, end = lines.offset(mention.span.start), lines.offset(mention.span.end)
    at = lines.text.find(mention.name.name, start, end)
    return lines.exactly(at, at + len(mention.name.name)) if at >= 0 else None


def _errors(snapshot: Snapshot) -> Iterator[Diagnostic]:
    return (one for found in snapshot.found.values() for one in found if one.severity is Severity.ERROR)


def fixes_at(snapshot: Snapshot, file: str, start: Position, end: Position) -> Iterator[Fix]:
    """The fixes of findings that touch a stretch of a file, each with its finding."""
    for one in snapshot.found.get(file, ()):
        if (
            one.fix is not None
            and one.fix.span.file == file
            and one.span.start <= end
            and start <= one.span.end
        ):
            yield one.fix


def safe_fixes(snapshot: Snapshot, lines: Lines) -> list[Fix]:
    """The safe fixes of a file that can be carried out together."""
    fixes = [one.fix for one in snapshot.found.get(lines.file, ()) if one.fix is not None and one.fix.safe]
    return applied(lines, _in_file(fixes, lines.file))[1]


def _in_file(fixes: Iterable[Fix], file: str) -> Iterator[Fix]:
    return (fix for fix in fixes if fix.span.file == file)


def formatted(file: str, text: str) -> str | None:
    """The text in its canonical layout; None where it cannot be read."""
    found = Diagnostics()
    result = format_text(file, text, found)
    return None if found.has_errors else result
