"""Events become places: anchors, merge keys, tags and duplicate keys are settled here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.diagnostics import Diagnostics, Note
from koordpolicy.diagnostics.value import Fix
from koordpolicy.language.documents import events as yaml
from koordpolicy.language.documents.faults import MAX_DEPTH, MAX_NODES, SyntaxFault, TooLarge
from koordpolicy.language.documents.scalars import NotANumberHere, plain, tagged
from koordpolicy.language.documents.text import HALF, Lines, TextMap, content_start, joined
from koordpolicy.language.documents.tree import Data, Place
from koordpolicy.language.documents.unquoted import unquoted
from koordpolicy.language.documents.wording import RENDER_FIRST, TEMPLATE

_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset({"str", "int", "float", "bool", "null"})


@dataclass(slots=True, eq=False)
class _Open:
    """A collection that has begun. `key` is the key whose value comes next, `flow` as YAML means it.

    `faulty` says that the key is no string, which has been reported.
    """

    place: Place
    flow: bool
    key: Place | None = None
    name: str | None = None
    faulty: bool = False
    merges: list[Place] = field(default_factory=list)


def build(lines: Lines, base: int, text: str, found: Diagnostics) -> Place | None:
    """The root place of one document, or `None` where the document is empty.

    `text` begins at offset `base` of the file. Raises `SyntaxFault` (offsets relative to `text`) and
    `TooLarge`; everything that leaves a sensible rest is reported to `found` instead.
    """
    builder = _Builder(lines, base, found)
    for event in yaml.events(text):
        handle = builder.handlers.get(type(event))
        if handle:
            handle(event)
    root = builder.root
    if root is not None and root.data is None and root.start == root.end:
        return None
    return root


class _Builder:
    def __init__(self, lines: Lines, base: int, found: Diagnostics) -> None:
        self.lines = lines
        self.base = base
        self.found = found
        self.root: Place | None = None
        self.stack: list[_Open] = []
        self.anchors: dict[str, Place] = {}
        self.count = 0
        self.handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self.scalar,
            yaml.MappingStartEvent: self.begin_mapping,
            yaml.SequenceStartEvent: self.begin_sequence,
            yaml.MappingEndEvent: self.end,
            yaml.SequenceEndEvent: self.end,
            yaml.AliasEvent: self.alias,
        }

    def scalar(self, event: Any) -> None:
        start = event.start_mark.index + self.base
        end = event.end_mark.index + self.base
        style = event.style or ""
        if event.anchor is not None or event.tag is not None:
            start = content_start(self.lines.text, start, end)
        before = len(self.found)
        text: str = event.value
        if not text.isascii() and HALF.search(text):
            text = self.whole(text, start, end, style)
        data: Data = text
        if event.tag is not None and event.tag != "!":
            data = self.by_tag(event.tag, text, start, end, event.start_mark.index + self.base)
        elif style == "" and event.tag is None:
            try:
                data = plain(text)
            except NotANumberHere as reason:
                self.found.add("KP107", self.lines.span(start, end), str(reason))
        text_end = None
        if style in ("|", ">"):
            text_end, end = end, start + len(self.lines.text[start:end].rstrip())
        place = Place(start, end, data, style, text_end=text_end, faulty=len(self.found) > before)
        if event.anchor is not None:
            self.anchors[event.anchor] = place
        self.attach(place)

    def whole(self, text: str, start: int, end: int, style: str) -> str:
        """The text without halves of characters, which only escapes can write; those that stand alone are reported."""
        text = joined(text)
        half = HALF.search(text)
        if half is None:
            return text
        place = TextMap(self.lines, start, end, style, text).span(half.start(), half.end())
        self.found.add(
            "KP002",
            place,
            f"`\\u{ord(half.group()):04X}` is half of a character, which no text can hold",
            help="write the character itself",
        )
        return HALF.sub("\N{REPLACEMENT CHARACTER}", text)

    def by_tag(self, tag: str, text: str, start: int, end: int, tag_start: int) -> Data:
        """The value of a scalar with a tag; the text itself where the tag is not one of ours."""
        short = tag.removeprefix(_CORE)
        if short == tag or short not in _SCALAR_TAGS:
            if tag.startswith("!(") and unquoted(self.lines.text, tag_start) is not None:
                raise SyntaxFault("found an expression where a tag belongs", tag_start - self.base)
            self.refuse_tag(tag, tag_start, start)
            return text
        try:
            return tagged(text, short)
        except ValueError as reason:
            self.found.add("KP106", self.lines.span(start, end), str(reason))
            return text

    def refuse_tag(self, tag: str, start: int, end: int) -> None:
        shown = "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
        width = len(self.lines.text[start:end].rstrip()) if end > start else 1
        self.found.add(
            "KP006",
            self.lines.span(start, start + max(width, 1)),
            f"the tag `{shown}` means nothing in a policy",
            help="quote the text if it begins with `!`"
            if shown == tag
            else "remove the tag; only `!!str`, `!!int`, `!!float`, `!!bool` and `!!null` are read",
        )

    def begin_mapping(self, event: Any) -> None:
        self.begin(event, "map", Place(0, 0, {}, keys={}, children={}))

    def begin_sequence(self, event: Any) -> None:
        self.begin(event, "seq", Place(0, 0, [], children=[]))

    def begin(self, event: Any, core_tag: str, place: Place) -> None:
        first = place.start = event.start_mark.index + self.base
        place.end = event.end_mark.index + self.base
        if event.anchor is not None or event.tag is not None:
            place.start = content_start(self.lines.text, first, len(self.lines.text))
            place.end = max(place.end, place.start)
        if event.tag not in (None, "!", _CORE + core_tag):
            self.refuse_tag(event.tag, first, place.start)
        if len(self.stack) >= MAX_DEPTH:
            raise TooLarge(
                place.start, f"the document is nested deeper than {MAX_DEPTH} levels", "flatten the document"
            )
        if event.anchor is not None:
            place.weight = 0  # not complete: an alias to it would contain itself
            self.anchors[event.anchor] = place
        self.stack.append(_Open(place, bool(event.flow_style)))

    def end(self, event: Any) -> None:
        opened = self.stack.pop()
        place = opened.place
        children = place.children
        below = children.values() if isinstance(children, dict) else children or ()
        if opened.flow:
            place.end = event.end_mark.index + self.base
        else:
            brought = [value.end for _, value in place.merges]
            place.end = max([*brought, *(child.end for child in below)], default=place.end)
        if opened.merges:
            self.merge(place, opened.merges)
            below = children.values() if isinstance(children, dict) else children or ()
        place.weight = 1 + sum(child.weight for child in below)
        if place.weight > MAX_NODES:
            raise self.too_large(place)
        self.attach(place)

    def too_large(self, place: Place) -> TooLarge:
        return TooLarge(
            place.start,
            f"the document has more than {MAX_NODES:,} values once its aliases are expanded",
            "use fewer aliases, or split the document",
        )

    def alias(self, event: Any) -> None:
        start = event.start_mark.index + self.base
        end = event.end_mark.index + self.base
        origin = self.anchors.get(event.anchor)
        if origin is None or origin.weight == 0:
            problem = "stands before its anchor or has none" if origin is None else "would contain itself"
            self.found.add(
                "KP002",
                self.lines.span(start, end),
                f"the alias `*{event.anchor}` {problem}",
                help=f"write `&{event.anchor}` before a value above it in the same document, or the value itself",
            )
            self.attach(Place(start, end, None, "", faulty=True))
            return
        self.attach(
            Place(
                start,
                end,
                origin.data,
                origin.style,
                origin.keys,
                origin.children,
                origin.origin or origin,
                origin.weight,
                origin.text_end,
            )
        )

    def attach(self, place: Place) -> None:
        """Put a finished place where it belongs: root, element, key or value."""
        self.count += 1
        if self.count > 2 * MAX_NODES:  # keys count here, but not in the weight
            raise self.too_large(place)
        if not self.stack:
            self.root = place
            return
        opened = self.stack[-1]
        parent = opened.place
        if isinstance(parent.children, list):
            parent.children.append(place)
            parent.data.append(place.data)  # type: ignore[union-attr]
        elif opened.key is None:
            opened.key = place
            opened.name = self.name_of(place, parent)
            opened.faulty = not isinstance(place.data, str)
        else:
            key, name = opened.key, opened.name
            opened.key = opened.name = None
            place.faulty = place.faulty or opened.faulty
            if place.start == place.end and place.data is None and place.style == "":
                # The library puts an absent value where the next thing begins; authors look after the colon.
                colon = self.lines.text.find(":", key.end)
                place.start = place.end = colon + 1 if colon >= 0 else key.end
            if name == "<<" and key.style == "" and key.origin is None:
                parent.merges = ((key, place),)
                self.collect_merge(place, opened)
            elif name is not None:
                parent.keys[name] = key  # type: ignore[index]
                parent.children[name] = place  # type: ignore[index]
                parent.data[name] = place.data  # type: ignore[index,call-overload]

    def name_of(self, key: Place, parent: Place) -> str | None:
        """The key as a string; `None` where it cannot be one or stands twice, which is reported."""
        assert parent.keys is not None
        span = self.lines.span(key.start, key.end)
        if key.style is None:
            parent.faulty = True
            if self.lines.text.startswith("{{", parent.start):
                place = self.lines.span(parent.start, parent.start + 2)
                self.found.add("KP002", place, TEMPLATE, help=RENDER_FIRST)
            else:
                self.found.add("KP106", span, "a key must be a string, this is a list or mapping")
            return None
        name = key.data
        if not isinstance(name, str):
            name = self.lines.text[key.start : key.end]
            self.found.add(
                "KP106",
                span,
                f"a key must be a string, `{name}` is not one"
                if name
                else "a key must be a string, this one is empty",
                help=f'quote it: `"{name}"`',
                fix=Fix("quote the key", span, f'"{name}"', safe=True),
            )
        first = parent.keys.get(name)
        if name == "<<" and key.style == "" and parent.merges:
            first = parent.merges[0][0]
        if first is not None:
            self.found.add(
                "KP003",
                span,
                f"the key `{name}` stands twice in one mapping",
                help="keep one of the two; the first one counts here",
                notes=(Note("first given here", self.lines.span(first.start, first.end)),),
            )
            return None
        return name

    def collect_merge(self, place: Place, opened: _Open) -> None:
        """Remember what `<<` brings in; it is applied when all keys of the mapping are known."""
        sources = place.children if isinstance(place.children, list) else [place]
        for source in sources:
            if source.faulty:
                continue
            if isinstance(source.children, dict):
                opened.merges.append(source)
            else:
                self.found.add(
                    "KP005",
                    self.lines.span(source.start, source.end),
                    "`<<` takes a mapping or a list of mappings",
                )

    def merge(self, place: Place, sources: list[Place]) -> None:
        """Add the keys that the mapping itself does not have; earlier sources win."""
        assert place.keys is not None and isinstance(place.children, dict) and isinstance(place.data, dict)
        for source in sources:
            assert source.keys is not None and isinstance(source.children, dict)
            for name, child in source.children.items():
                if name not in place.children:
                    place.keys[name] = source.keys[name]
                    place.children[name] = child
                    place.data[name] = child.data
