"""What stands under the cursor: the document, the path of the key or value, the expression and the place in it."""

from collections.abc import Iterator
from dataclasses import dataclass

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import Document, Lines, TextMap, read_documents
from koordpolicy.language.documents.document import Path
from koordpolicy.language.documents.tree import Place
from koordpolicy.language_server.shapes import Shape, shape_at


@dataclass(frozen=True, slots=True)
class Cursor:
    """A key or scalar of a document. `start:end` are its offsets in the file."""

    document: Document
    path: Path
    on_key: bool
    start: int
    end: int

    @property
    def shape(self) -> Shape | None:
        """What may stand at the path."""
        return shape_at(self.document.kind, self.path)

    @property
    def text(self) -> TextMap | None:
        """The characters of the scalar."""
        return None if self.on_key else self.document.positions.text(self.path)

    @property
    def expression(self) -> TextMap | None:
        """The characters of the scalar where it is CEL."""
        found = self.shape
        return self.text if found is not None and found.cel is not None else None


def documents_of(file: str, text: str) -> list[Document]:
    """The documents of a text as far as they can be read."""
    return read_documents(file, text, Diagnostics(), mend=True)


def cursor_at(documents: list[Document], offset: int) -> Cursor | None:
    """The key or scalar that an offset lies in or just behind."""
    best: Cursor | None = None
    for document in documents:
        for found in everything(document):
            if found.start <= offset <= found.end and (
                best is None or found.end - found.start <= best.end - best.start
            ):
                best = found
    return best


def everything(document: Document) -> Iterator[Cursor]:
    """All keys and scalars of a document where they are written, aliases aside."""
    waiting: list[tuple[Place, Path]] = [(document.positions.root, ())]
    while waiting:
        place, path = waiting.pop()
        if place.origin is not None:
            continue
        if place.style is not None:
            yield Cursor(document, path, False, place.start, max(place.end, place.text_end or 0))
        children = place.children
        if isinstance(children, dict):
            for name, child in children.items():
                key = (place.keys or {}).get(name)
                if key is not None:
                    yield Cursor(document, (*path, name), True, key.start, key.end)
                waiting.append((child, (*path, name)))
        elif children:
            waiting.extend((child, (*path, at)) for at, child in enumerate(children))


def index_in(text: TextMap, offset: int) -> int | None:
    """The index in the decoded string of what stands at an offset of the file; None where nothing of it does."""
    if not text.start <= offset <= text.end:
        return None
    best = 0
    for index in range(len(text.value) + 1):
        if text.offset(index) > offset:
            break
        best = index
    return best


def lines_of(document: Document) -> Lines:
    """The text that a document stands in."""
    return document.positions.lines
