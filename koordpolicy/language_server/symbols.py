"""The outline of a file: its documents, and what stands in their spec."""

from collections.abc import Iterator
from dataclasses import dataclass

from koordpolicy.language.documents import Document
from koordpolicy.language.documents.document import Path

_SHOWN = 1_000


@dataclass(frozen=True, slots=True)
class Symbol:
    """A document, a field, or a named element. `whole` and `name_place` are offsets in the file."""

    name: str
    detail: str
    whole: tuple[int, int]
    name_place: tuple[int, int]
    children: tuple["Symbol", ...] = ()


def symbols(documents: list[Document]) -> list[Symbol]:
    """One symbol a document."""
    return [_document(document) for document in documents]


def _document(document: Document) -> Symbol:
    root = document.positions.root
    lines = document.positions.lines
    place = lines.offset(document.span.start), lines.offset(document.span.end)
    name = document.name or document.kind or "document"
    spec = root.child("spec")
    children = tuple(_fields(document, ("spec",)))[:_SHOWN] if spec is not None else ()
    end = max(root.end, place[1])
    return Symbol(name, document.kind, (min(root.start, place[0]), end), place, children)


def _fields(document: Document, path: Path) -> Iterator[Symbol]:
    place = document.positions.root
    for step in path:
        inner = place.child(step)
        if inner is None or inner.origin is not None:
            return
        place = inner
    if not isinstance(place.children, dict):
        return
    for name, child in place.children.items():
        key = (place.keys or {}).get(name)
        if key is None or not key.start <= key.end <= child.end:
            continue
        nested: tuple[Symbol, ...] = ()
        if path == ("spec",) and child.origin is None:
            nested = tuple(_fields(document, (*path, name)))
            if isinstance(child.children, list):
                nested = tuple(
                    Symbol(
                        str(one.data["name"]),
                        "",
                        (one.start, max(one.end, one.start + 1)),
                        (one.start, one.start + 1),
                    )
                    for one in child.children
                    if isinstance(one.data, dict)
                    and isinstance(one.data.get("name"), str)
                    and one.origin is None
                )
        yield Symbol(name, "", (key.start, child.end), (key.start, key.end), nested)
