"""Format whole files, and check that nothing but the layout changed."""

import re

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents.faults import SyntaxFault, TooLarge
from koordpolicy.language.documents.read import place_of, read_documents
from koordpolicy.language.documents.split import split
from koordpolicy.language.documents.text import Lines
from koordpolicy.language.documents.tree import Place
from koordpolicy.language.format.layout import layout

_MARKER = re.compile(r"---(?P<rest> +#.*| *)(?:\n|\Z)")
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)


def format_text(file: str, text: str, found: Diagnostics) -> str:
    """The text of a file in canonical layout.

    A file that cannot be read without errors is given back as it is, and the errors are in `found`.
    """
    problems = Diagnostics()
    before = [document.data for document in read_documents(file, text, problems)]
    found.extend(problems)
    if problems.has_errors:
        return text
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if _DIRECTIVE.search(plain):
        return text
    result = _joined([_document(part) for _, part in split(plain)])
    # A block scalar at the end of a file without a final line break has none either.
    for candidate in (result, result.removesuffix("\n")):
        check = Diagnostics()
        after = [document.data for document in read_documents(file, candidate, check)]
        if _same(after, before) and not check.has_errors:
            return candidate
    # INVARIANT: formatting changes no data. A layout this formatter misjudged stays as it was.
    return text


def _same(one: object, other: object) -> bool:
    """Equal, and of equal types: 1, 1.0 and true differ. The order of keys does not count."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _joined(parts: list[tuple[str | None, str]]) -> str:
    """Documents below each other, divided by `---`; parts without anything in them go."""
    shown = ""
    for marker, body in parts:
        if not body and marker in (None, "---"):
            continue
        line = marker or ("---" if shown else "")
        shown += (line + "\n" if line else "") + body
    return shown


def _document(text: str) -> tuple[str | None, str]:
    """The marker line that a document begins with, if any, and its body in canonical layout."""
    found = _MARKER.match(text)
    if not found:
        if text.startswith("---"):  # content on the line of the marker
            return None, text.rstrip("\n") + "\n"
        return None, _body(text)
    return ("---" + found.group("rest")).rstrip(), _body(text[found.end() :])


def _body(text: str) -> str:
    """One document without its marker. What cannot be moved safely is only freed of space at its end."""
    if not text.strip():
        return ""
    unmoved = text.strip("\n") + "\n"
    place = _read(unmoved)
    moved = layout(unmoved, place)
    if moved is None or moved == unmoved:
        return unmoved
    again = _read(moved)
    stands = place is None or (
        again is not None and _same(again.data, place.data) and layout(moved, again) == moved
    )
    return moved if stands and _comments(moved) == _comments(unmoved) else unmoved


def _read(text: str) -> Place | None:
    try:
        return place_of(Lines("", text), 0, text, Diagnostics())
    except (SyntaxFault, TooLarge):
        return None


def _comments(text: str) -> list[str]:
    """What follows the number signs: in any order, since keys may move. Texts with a sign count too."""
    return sorted(line.partition("#")[2].rstrip() for line in text.split("\n") if "#" in line)
