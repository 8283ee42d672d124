"""Tells that something may have changed, at once where the kernel says so, else at the next poll."""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from watchfiles import Change, awatch

from koordpolicy.diagnostics.escaping import encodable
from koordpolicy.source.survey import SUFFIXES

_GROUPING_MS = 100
_STEP_MS = 20
"""Changes that come within a step of each other wake once."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What counts in a directory: changes of these names, or of all that policies could be in.

    `identity` (device and inode) tells a directory from another that took its place: that one is watched anew.
    """

    identity: tuple[int, int]
    names: frozenset[str] | None = None


class Watcher:
    """Waits for changes in directories, not below them. A hint only: whoever is woken looks for himself.

    File systems without events, exhausted limits of the kernel, and events that were lost cost no more than
    the wait for the poll.
    """

    def __init__(self) -> None:
        self._over: Mapping[str, Watched] = {}
        self._lost = False
        """Whether a directory that is watched went since the watch began."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def over(self, directories: Mapping[str, Watched]) -> bool:
        """Watch these directories from now on; whether that begins something new.

        If so, what happened until now may have been missed, and another look is due.
        """
        # The library that watches takes only names that are UTF-8; no policy is read below others.
        directories = {path: watched for path, watched in directories.items() if encodable(path) == path}
        if directories == self._over and not self._lost:
            if self._task is not None and self._task.done():
                await self._begin()  # it could not be done before; whether it can now shows the next poll
            return False
        self._over = dict(directories)
        await self._begin()
        return True

    async def wait(self, seconds: float) -> None:
        """Return when something changed since the last return, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    async def close(self) -> None:
        """Stop watching."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _begin(self) -> None:
        await self.close()
        self._lost = False
        if self._over:
            self._task = asyncio.create_task(self._watch(self._over))
            # The watch stands as soon as its task has begun: it is set up before anything is awaited.
            await asyncio.sleep(0)

    async def _watch(self, over: Mapping[str, Watched]) -> None:
        def matters(change: Change, path: str) -> bool:
            if change is Change.deleted and path in over:
                # The kernel's watch went with the directory. Another one may stand there by the next look, with
                # the same number even, and would look like the one that is watched.
                self._lost = True
                return True
            directory, name = os.path.split(path)
            watched = over.get(directory)
            if watched is None:
                return path in over  # the directory itself
            if watched.names is not None:
                return name in watched.names
            # Whatever comes or goes may be a directory or a link; what is written to must be a policy.
            return change is not Change.modified or name.endswith(SUFFIXES)

        try:
            async for _ in awatch(
                *over,
                watch_filter=matters,
                debounce=_GROUPING_MS,
                step=_STEP_MS,
                recursive=False,
                force_polling=False,
                ignore_permission_denied=True,
            ):
                self._changed.set()
        except* (OSError, RuntimeError):
            # The kernel's limits are reached, a directory went in this moment, or something happened to a file
            # whose name is not UTF-8, which ends the watch as well.
            pass
