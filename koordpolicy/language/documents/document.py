"""A policy document as plain data, with the place of every key and value."""

from dataclasses import dataclass
from typing import cast

from koordpolicy.diagnostics import Position, Span
from koordpolicy.language.documents.quick import quick
from koordpolicy.language.documents.text import Lines, TextMap
from koordpolicy.language.documents.tree import Data, Place

Path = tuple[str | int, ...]

_LONGEST_TAG = 100
"""Characters before a scalar among which a tag of its own stands: those of the core schema are short."""


class Positions:
    """Spans by path, a path being the keys and indices from the root: `("spec", "variables", 0)`.

    A path that does not exist gives the place of its nearest existing ancestor, so that a finding
    about something absent still has a place.

    Places weigh several times what they are the places of, and few are asked for once a document has a meaning:
    `let_go` forgets those that can be read again.
    """

    __slots__ = ("_again", "_root", "lines")

    def __init__(self, lines: Lines, root: Place, again: tuple[int, int] | None = None) -> None:
        """`again`: offsets of the document's text in the file, where `quick` gives the same root for it every time."""
        self.lines = lines
        self._root: Place | None = root
        self._again = again

    @property
    def root(self) -> Place:
        """The place of the whole document."""
        root = self._root
        if root is None:
            assert self._again is not None
            start, end = self._again
            root = self._root = quick(self.lines.text[start:end], start)
            assert root is not None  # it was read so before
        return root

    def let_go(self) -> None:
        """Forget the places, where they can be read again when somebody asks."""
        if self._again is not None:
            self._root = None

    def value(self, path: Path = ()) -> Span:
        """Where the value stands (the alias itself where an alias stands for it)."""
        place, _ = self._walk(path)
        return self.lines.span(place.start, place.end)

    def key(self, path: Path) -> Span:
        """Where the key of the value stands; for an element of a list, the element itself."""
        place, keys = self._walk(path)
        found = keys or place
        return self.lines.span(found.start, found.end)

    def start(self, path: Path = ()) -> Position:
        """Where the value begins."""
        return self.value(path).start

    def text(self, path: Path) -> TextMap | None:
        """The map of a string scalar from its characters to the file, else `None`."""
        place, _ = self._walk(path)
        place = place.origin or place
        if place.style is None or not isinstance(place.data, str):
            return None
        return TextMap(self.lines, place.start, place.text_end or place.end, place.style, place.data)

    def text_span(self, path: Path, start: int, end: int) -> Span:
        """Where `value[start:end]` of the string at `path` stands; the value's place if no string does."""
        text = self.text(path)
        return text.span(start, end) if text else self.value(path)

    def origin(self, path: Path) -> Span | None:
        """Where the anchored value stands when an alias is used at `path`."""
        place, _ = self._walk(path)
        return self.lines.span(place.origin.start, place.origin.end) if place.origin else None

    def written(self, path: Path) -> str | None:
        """The characters of a scalar without quotes and tag, as they stand in the file (`1.10`); `None` for others."""
        place, _ = self._walk(path)
        place = place.origin or place
        before = self.lines.text[max(0, place.start - _LONGEST_TAG) : place.start].split()
        if place.style != "" or (before and before[-1].startswith("!")):
            return None
        return self.lines.text[place.start : place.end]

    def has(self, path: Path) -> bool:
        """Whether the path exists."""
        place: Place | None = self.root
        for step in path:
            place = place.child(step) if place else None
        return place is not None

    def faulty(self, path: Path) -> bool:
        """Whether something on the way to the path is a stand-in for what has been reported already."""
        place: Place | None = self.root
        for step in path:
            place = place.child(step) if place else None
            if place is not None and place.faulty:
                return True
        return False

    def _walk(self, path: Path) -> tuple[Place, Place | None]:
        """The place at the path or its nearest ancestor, and that place's key."""
        place, key = self.root, None
        for step in path:
            child = place.child(step)
            if child is None:
                break
            key = (place.keys or {}).get(step) if isinstance(step, str) else None
            place = child
        return place, key


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One document of a file.

    `api_version`, `kind` and `name` are empty where the document does not say them as strings;
    whether they are right is for the schema check. `index` counts the documents of the file from 0.
    Equal `file`, `index` and `text_digest` mean equal documents at equal places. One that is `mended` lacks
    lines that could not be read, which has been reported.
    """

    file: str
    index: int
    api_version: str
    kind: str
    name: str
    data: dict[str, Data]
    positions: Positions
    text_digest: str
    mended: bool = False

    @classmethod
    def of(cls, index: int, positions: Positions, *, mended: bool = False) -> "Document":
        """The document that stands at the root of `positions`, which must be a mapping."""
        data = cast(dict[str, Data], positions.root.data)
        metadata = data.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return cls(
            positions.lines.file,
            index,
            _string(data.get("apiVersion")),
            _string(data.get("kind")),
            _string(name),
            data,
            positions,
            positions.lines.digest,
            mended,
        )

    @property
    def span(self) -> Span:
        """The place to point at for the document as a whole: its name, else its kind, else its start."""
        for path in (("metadata", "name"), ("kind",)):
            if self.positions.has(path):
                return self.positions.value(path)
        start = self.positions.root.start
        return self.positions.lines.span(start, start + 1)


def _string(value: Data) -> str:
    return value if isinstance(value, str) else ""
