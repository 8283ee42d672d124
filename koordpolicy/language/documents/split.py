"""A file is cut into its documents before any of them is parsed."""

import re
from collections.abc import Iterator

_MARKER = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)


def split(text: str) -> Iterator[tuple[int, str]]:
    """Cut a file into its documents: offset and text of each.

    A line that begins with `---` or `...` ends a document wherever it stands, scalars included, so
    the cut needs no parsing and a fault in one document stays there. Directives stay with the
    document that follows them.
    """
    start = 0
    for found in _MARKER.finditer(text):
        if found.group() == "---" and (
            found.start() == start or _only_directives(text[start : found.start()])
        ):
            continue
        yield start, text[start : found.start()]
        start = found.end() if found.group() == "..." else found.start()
    yield start, text[start:]


def _only_directives(text: str) -> bool:
    return bool(_DIRECTIVE.search(text)) and all(
        not line or line[0] in "%#" or line.isspace() for line in text.splitlines()
    )
