"""A source whose policies never change, or change when told: for the built-in pack alone, and for tests."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from koordpolicy.source.revision import Revision, SourceTrouble, digest_of


class FixedSource:
    """Gives the tree it was made with, then whatever `give` is told. Read by one consumer."""

    def __init__(self, origin: str, files: Mapping[str, str] | None = None) -> None:
        self.origin = origin
        self._waiting: asyncio.Queue[Revision | SourceTrouble] = asyncio.Queue()
        if files is not None:
            self.give(files)

    def give(self, files: Mapping[str, str], commit: str = "") -> Revision:
        """A new tree; the revision it makes."""
        revision = Revision(dict(files), digest_of(files), commit)
        self._waiting.put_nowait(revision)
        return revision

    def say(self, item: Revision | SourceTrouble) -> None:
        """A revision, or a trouble, as it stands."""
        self._waiting.put_nowait(item)

    async def revisions(self) -> AsyncIterator[Revision | SourceTrouble]:
        """See `Source.revisions`."""
        while True:
            yield await self._waiting.get()
