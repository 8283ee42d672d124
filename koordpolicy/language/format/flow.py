"""Flow collections on one line: `{a: b, c: [d, e]}`."""

from koordpolicy.language.documents.tree import Place


def tidy(text: str, place: Place) -> str | None:
    """The collection with one space after each `,` and `:` and none inside the brackets.

    `None` where it holds more than the plain entries that places tell of: anchors, tags, merges,
    a comma at the end.
    """
    written = text[place.start : place.end]
    if "\n" in written:
        return None
    shown = _shown(text, place)
    # INVARIANT: only spaces between entries change.
    return shown if shown.replace(" ", "") == written.replace(" ", "") else None


def _shown(text: str, place: Place) -> str:
    if place.origin is not None or place.children is None:
        return text[place.start : place.end]
    if isinstance(place.children, list):
        return "[" + ", ".join(_shown(text, element) for element in place.children) + "]"
    assert place.keys is not None
    entries = []
    for name, child in place.children.items():
        key = place.keys[name]
        value = _shown(text, child)
        entries.append(f"{text[key.start : key.end]}:{' ' if value else ''}{value}")
    return "{" + ", ".join(entries) + "}"
