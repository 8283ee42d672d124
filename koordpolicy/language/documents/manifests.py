"""Objects of a cluster, as `kubectl get -o yaml` prints them: one List, of any length.

Policies are written by people, so that a long file is refused before it costs anything. A cluster's objects are many
times as long. Their List is cut into its items, and each is read as a document of its own, within the usual limits.
"""

import re
from collections.abc import Iterator
from typing import Final

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents.document import Document
from koordpolicy.language.documents.read import MAX_CHARACTERS, is_text, read_one
from koordpolicy.language.documents.split import split
from koordpolicy.language.documents.text import Lines

_ITEMS: Final = re.compile(r"^items:[ \t]*\r?\n(?=( *)- )", re.MULTILINE)
"""What stands before the items, which have a dash after so many spaces."""


def read_manifests(file: str, text: str, found: Diagnostics) -> Iterator[Document]:
    """The documents of a file, in order; findings as `read_documents` has them.

    Of a List that is longer than a document may be each item comes as one. An item of a `PodList` need not say what
    it is.
    """
    lines = Lines(file, text)
    base = 1 if text.startswith("\ufeff") else 0
    if not is_text(lines, base, found):
        return
    count = 0
    for start, part in split(text[base:]):
        for document in _read(lines, base + start, part, count, found):
            count += 1
            yield document


def _read(lines: Lines, base: int, part: str, index: int, found: Diagnostics) -> Iterator[Document]:
    items = _ITEMS.search(part) if len(part) > MAX_CHARACTERS else None
    if items is None:
        whole = read_one(lines, base, part, index, found)
        if whole is not None:
            yield whole
        return
    indent = len(items.group(1))
    after = re.compile(rf"^ {{0,{indent}}}(?=[^ \r\n#-])", re.MULTILINE).search(part, items.end())
    stop = len(part) if after is None else after.start()
    around = [
        one.data
        for start, end in ((0, items.start()), (stop, len(part)))
        if (one := read_one(lines, base + start, part[start:end], index, found)) is not None
    ]
    typed = _typed({name: value for data in around for name, value in data.items()})
    dashes = [
        one.start()
        for one in re.compile(rf"^ {{{indent}}}- ", re.MULTILINE).finditer(part, items.end(), stop)
    ]
    for begin, end in zip(dashes, [*dashes[1:], stop], strict=True):
        # The dash gives way to a space: what was an item is a document, and every column stays.
        text = f"{part[begin : begin + indent]} {part[begin + indent + 1 : end]}"
        item = read_one(lines, base + begin, text, index, found)
        if item is not None:
            index += 1
            item.data.update({name: value for name, value in typed.items() if name not in item.data})
            yield item


def _typed(listed: dict[str, object]) -> dict[str, str]:
    """What a typed list says of its items."""
    kind = str(listed.get("kind", ""))
    if kind == "List" or not kind.endswith("List"):
        return {}
    return {"apiVersion": str(listed.get("apiVersion", "")), "kind": kind.removesuffix("List")}
