"""YAML text becomes documents whose every key and value still knows its place.

    text --read_documents--> Document(data, positions)

`quick` reads what most documents are written in; `events` is the door to the YAML library for the
rest, `tree` builds places from its events, `scalars` says what a plain scalar means, `text` maps
decoded strings back to the file. `manifests` reads what is longer than people write. Nothing here
knows kinds, CEL or facts; findings have codes KP001-KP006 (and KP106 for keys that are not strings).

Scalars mean what the core schema of YAML 1.2 says: `true`, `false` and `null` are words with a
meaning, but `yes`, `no`, `on` and `off` are plain strings; `0o17` is octal, `017` is seventeen.
"""

from koordpolicy.language.documents.document import Document, Positions
from koordpolicy.language.documents.manifests import read_manifests
from koordpolicy.language.documents.read import read_documents
from koordpolicy.language.documents.text import Lines, TextMap

__all__ = ["Document", "Lines", "Positions", "TextMap", "read_documents", "read_manifests"]
