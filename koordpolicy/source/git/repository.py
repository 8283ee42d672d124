"""A repository as a source of revisions: synced and read by the process that needs it."""

import asyncio
import os
from collections.abc import AsyncIterator

from koordpolicy.source.git.sync import GitSync
from koordpolicy.source.git.trouble import SyncError
from koordpolicy.source.place import Nowhere, locate
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of
from koordpolicy.source.survey import is_below, survey
from koordpolicy.source.texts import TreeTexts

_MOST_TRIES = 20


class RepositorySource:
    """The revisions that a sync publishes, of the directory `path` in the repository (default: all of it).

    While its revisions are followed, the sync runs. What an earlier run published is given at once; a trouble of
    the sync is given after it.
    """

    def __init__(self, sync: GitSync, path: str = "") -> None:
        self._sync = sync
        self._path = path.strip("/")

    @property
    def origin(self) -> str:
        shown = f"{self._sync.address.shown}@{self._sync.settings.ref}"
        return f"{shown}:{self._path}" if self._path else shown

    async def revisions(self) -> AsyncIterator[Revision | SourceTrouble]:
        """As `Source` says. To be followed once at a time."""
        happened = asyncio.Event()
        end = self._sync.subscribe(lambda _: happened.set())
        running = asyncio.create_task(self._sync.run(), name=f"sync {self.origin}")
        running.add_done_callback(lambda _: happened.set())
        texts = TreeTexts()
        known: tuple[str, Revision | SourceTrouble] | None = None
        told: object = None
        try:
            while True:
                await happened.wait()
                happened.clear()
                if running.done():
                    running.result()
                state = self._sync.state
                if state.commit and (known is None or known[0] != state.commit):
                    read = await self._read(state.commit, texts)
                    known = None if read is None else (state.commit, read)
                outcomes: list[Revision | SourceTrouble] = []
                if known is not None and (state.trouble is None or told is None):
                    outcomes.append(known[1])
                if state.trouble is not None:
                    outcomes.append(SourceTrouble(state.trouble.reason, state.trouble.message))
                for outcome in outcomes:
                    mark = outcome if isinstance(outcome, SourceTrouble) else outcome.commit
                    if mark != told:
                        told = mark
                        yield outcome
        finally:
            end()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _read(self, commit: str, texts: TreeTexts) -> Revision | SourceTrouble | None:
        """The tree of a commit; None when it was collected meanwhile, so that a newer one is there."""
        for _ in range(_MOST_TRIES):
            outcome = await asyncio.to_thread(self._read_once, commit, texts)
            if outcome is not None:
                return outcome
            if self._sync.state.commit != commit:
                return None
            await asyncio.sleep(0.05)
        return SourceTrouble("Unsettled", f"the tree of {commit} changes while it is read")

    def _read_once(self, commit: str, texts: TreeTexts) -> Revision | SourceTrouble | None:
        tree = os.path.realpath(self._sync.store.tree(commit))
        place = locate(os.path.join(tree, self._path))
        if isinstance(place, Nowhere) or not is_below(place.real, tree):
            return (
                SourceTrouble("Missing", f"commit {commit} has no `{self._path}`")
                if os.path.isdir(tree)
                else None
            )
        read = texts.read(survey(place.real, tree))
        if read.torn or not os.path.isdir(tree):
            return None
        if not read.touched:
            return SourceTrouble("Empty", f"there is no policy file (*.yaml, *.yml) in commit {commit}")
        return Revision(read.files, digest_of(read.files), commit, read.found)


__all__ = ["RepositorySource", "SyncError"]
