"""The last good policy tree, kept on disk for the next start."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from koordpolicy.diagnostics.escaping import encodable
from koordpolicy.files import replace_file
from koordpolicy.source.revision import Revision, digest_of

FORMAT: Final = 1
FILE: Final = "last-good-policies.json"
MAX_BYTES: Final = 256_000_000
"""A larger file is not one that we wrote."""


class StoreError(Exception):
    """The kept tree is there but cannot be used; the message says why."""


def kept_above(store: "LastGood | None") -> Mapping[str, str]:
    """What lay above the kept tree; nothing where none is kept, or it is of no use."""
    try:
        revision = None if store is None else store.load()
    except StoreError:
        return {}
    return {} if revision is None else revision.above


class LastGood:
    """One revision in one file of the state directory, replaced as a whole or not at all.

    The file holds texts only: what they mean is compiled anew, by whichever version of the program reads them.
    """

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory) / FILE

    def save(self, revision: Revision) -> None:
        """Keep this revision. Raises OSError when the directory cannot be written."""
        content = {
            "format": FORMAT,
            "digest": revision.digest,
            "commit": revision.commit,
            "files": dict(revision.files),
        }
        if revision.above:
            content["above"] = dict(revision.above)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        replace_file(self.path, text.encode())

    def load(self) -> Revision | None:
        """The kept revision, None when there is none. Raises StoreError when it is damaged or cannot be read."""
        try:
            if self.path.stat().st_size > MAX_BYTES:
                raise StoreError(f"{self.path} is larger than {MAX_BYTES:,} bytes; remove it")
            content = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from None
        return self._revision(content)

    def _revision(self, content: Any) -> Revision:
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise StoreError(f"{self.path} has another format than {FORMAT}")
        files, digest, commit = content.get("files"), content.get("digest"), content.get("commit")
        above = content.get("above", {})
        if not (
            isinstance(files, dict)
            and isinstance(above, dict)
            and isinstance(digest, str)
            and isinstance(commit, str)
        ):
            raise StoreError(f"{self.path} is incomplete")
        texts = [one for pair in (*files.items(), *above.items()) for one in pair]
        if not all(isinstance(one, str) and encodable(one) == one for one in texts):
            raise StoreError(f"{self.path} holds something that is no text")
        if digest_of(files) != digest:
            raise StoreError(f"{self.path} is damaged: its content does not have the digest it names")
        return Revision(files, digest, commit, above=above)
