"""Names the server makes up: uids and the ends of generated names. Reproducible, so that runs can be repeated."""

import hashlib
import uuid
from typing import Final

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like another letter, so that no words come about."""

_SUFFIX: Final = 5
_LONGEST_PREFIX: Final = 63 - _SUFFIX


class GeneratedNames:
    """Made-up names, all different for one `identity`, the same for the same identity and order of calls."""

    def __init__(self, identity: str) -> None:
        self._root = uuid.uuid5(uuid.NAMESPACE_DNS, identity)
        self._made = 0

    def uid(self) -> str:
        """A new uid."""
        self._made += 1
        return str(uuid.uuid5(self._root, str(self._made)))

    def complete(self, prefix: str) -> str:
        """A name that begins with `prefix`, shortened so that the name fits a label."""
        self._made += 1
        digest = hashlib.sha256(f"{self._root}/{self._made}".encode()).digest()
        return prefix[:_LONGEST_PREFIX] + "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_SUFFIX])
