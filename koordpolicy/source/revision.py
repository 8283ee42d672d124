"""What every source gives: whole revisions of a policy tree, the newest first and one at a time."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from koordpolicy.diagnostics import Diagnostics


@dataclass(frozen=True, slots=True)
class Revision:
    """One state of a policy tree, read as a whole.

    `files` are texts by path relative to the tree, both without surrogates: every format can hold them. `commit` is the Git commit (40 or 64 hex digits) where
    one is known, else "". `found` is what could not be read (KP001, KP004): with an error among it the
    revision is no good, whatever the other files say. `above` are texts of policies that lie above the tree and are no part
    of it: digest and commit, by which processes speak of a revision, are the tree's. One that is `held` goes live elsewhere, by stages: here it
    decides about what a gate lets it, until it is given without being held.
    """

    files: Mapping[str, str]
    digest: str
    commit: str = ""
    found: Diagnostics = field(default_factory=Diagnostics, compare=False)
    above: Mapping[str, str] = field(default_factory=dict)
    held: bool = False

    @property
    def name(self) -> str:
        """What people call it: the commit where there is one, the digest of its content otherwise."""
        return self.commit or f"sha256:{self.digest}"


@dataclass(frozen=True, slots=True)
class SourceTrouble:
    """Why a source has no revision to give for now; what was given before stays good."""

    reason: str
    message: str


class Source(Protocol):
    """Where revisions come from. Sources know nothing of what policies mean."""

    @property
    def origin(self) -> str:
        """Where it looks, for people: a path, a repository, a cluster."""
        ...

    def revisions(self) -> AsyncIterator[Revision | SourceTrouble]:
        """The present revision, then each newer one as it appears.

        Only the newest is given: what came and went while the caller was busy is skipped. The same content under
        the same commit is not given twice in a row. A trouble is given once, when it begins; its end is told by the
        present revision, given again even if nothing in it changed. Never ends by itself.
        """
        ...


def digest_of(files: Mapping[str, str]) -> str:
    """The content digest of a tree (SHA-256, hexadecimal), independent of the order of files."""
    total = hashlib.sha256()
    for path in sorted(files):
        for part in (path, files[path]):
            encoded = part.encode("utf-8", "surrogatepass")  # a digest is no place to fail
            total.update(len(encoded).to_bytes(8, "big"))
            total.update(encoded)
    return total.hexdigest()
