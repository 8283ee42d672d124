"""Colours of expressions: what each token of CEL is."""

from collections.abc import Iterator
from typing import Final

from koordpolicy.language.cel.lexer import Token, scan
from koordpolicy.language.cel.syntax import KEYWORDS, SyntaxProblem
from koordpolicy.language.documents import Document, Lines
from koordpolicy.language_server.expressions import expressions_of
from koordpolicy.language_server.positions import Coordinates

TYPES: Final = ("keyword", "string", "number", "operator", "function", "variable", "property", "namespace")
_SPACES: Final = frozenset(("variables", "parameters", "constants"))
_NUMBERS: Final = frozenset(("int", "uint", "double"))
_QUIET: Final = frozenset("(),.[]{}:")


def semantic_tokens(documents: list[Document], coordinates: Coordinates) -> list[int]:
    """The tokens of all expressions as the protocol writes them, five numbers each."""
    found: list[tuple[int, int, int, int]] = []
    for document in documents:
        lines = document.positions.lines
        for path, text in expressions_of(document):
            characters = document.positions.text(path)
            if characters is None or document.positions.origin(path) is not None:
                continue
            for token, kind in _kinds(text):
                start, end = characters.offset(token.start), characters.offset(token.end - 1) + 1
                found += _on_its_line(lines, start, end, TYPES.index(kind), coordinates)
    return list(_relative(sorted(set(found))))


def _kinds(text: str) -> Iterator[tuple[Token, str]]:
    try:
        tokens = scan(text, [])
    except SyntaxProblem:
        return
    before = ""
    for at, token in enumerate(tokens[:-1]):
        following = tokens[at + 1].kind
        kind = ""
        if token.kind in KEYWORDS:
            kind = "keyword"
        elif token.kind in ("string", "bytes"):
            kind = "string"
        elif token.kind in _NUMBERS:
            kind = "number"
        elif token.kind in ("name", "quoted"):
            if following == "(":
                kind = "function"
            elif before in (".", "?"):
                kind = "property"
            else:
                kind = "namespace" if token.value in _SPACES else "variable"
        elif token.kind not in _QUIET and token.kind != "bad":
            kind = "operator"
        if kind and token.end > token.start:
            yield token, kind
        before = token.kind


def _on_its_line(
    lines: Lines, start: int, end: int, kind: int, coordinates: Coordinates
) -> Iterator[tuple[int, int, int, int]]:
    place = coordinates.between(lines, start, end)
    if place.start.line == place.end.line and place.end.character > place.start.character:
        yield place.start.line, place.start.character, place.end.character - place.start.character, kind


def _relative(tokens: list[tuple[int, int, int, int]]) -> Iterator[int]:
    line = column = 0
    for at, start, length, kind in tokens:
        if at != line:
            column = 0
        yield from (at - line, start - column, length, kind, 0)
        line, column = at, start
