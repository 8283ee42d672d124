"""A path as a source of revisions: a directory, a link that git-sync swaps, a volume of Kubernetes."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from koordpolicy.source.commit import annotated, commit_of, git_stamps
from koordpolicy.source.git.program import Git
from koordpolicy.source.place import Nowhere, ResolvedPath, TreeShape, locate
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of
from koordpolicy.source.survey import Stamp, Survey, survey
from koordpolicy.source.texts import Tree, TreeTexts
from koordpolicy.source.watcher import Watched, Watcher

_MOST_TRIES: Final = 20
"""Attempts in a row to read a tree that changes under the reader, before it says so and waits."""
_BREATH: Final = 0.05
"""Seconds between them."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds.

    `quiet`: a tree that is edited in place is read once nothing in it changed for so long, `longest` at the
    latest. `poll`: how often it is looked at without an event.
    """

    quiet: float = 0.2
    longest: float = 2.0
    poll: float = 5.0


@dataclass(frozen=True, slots=True)
class _Sight:
    """All that a look at the path tells without reading a file."""

    place: ResolvedPath | Nowhere
    seen: Survey | None = None
    git: tuple[Stamp, ...] | None = ()


@dataclass(slots=True)
class _Memory:
    """What was given for what was seen."""

    sight: _Sight | None = None
    outcome: Revision | SourceTrouble | None = None
    texts: TreeTexts = field(default_factory=TreeTexts)


class PathSource:
    """Revisions of the tree at a path.

    What the path leads to is told anew at each look: a directory may become a link, a link lead elsewhere.
    A tree that is swapped as a whole is read at once; one that is edited in place is read when it is still.
    A tree that changes while it is read is read again, never given.
    """

    def __init__(self, path: str | Path, timing: Timing | None = None, git: Git | None = None) -> None:
        self._path = os.path.join(Path.cwd(), path)
        self._origin = str(path)
        self._timing = timing or Timing()
        self._git = git or Git()
        self.shape: TreeShape | None = None
        """What the path was at the last look, None where it led to nothing."""

    @property
    def origin(self) -> str:
        return self._origin

    async def revisions(self) -> AsyncIterator[Revision | SourceTrouble]:
        """As `Source` says. Each call follows the path on its own."""
        watcher = Watcher()
        memory = _Memory()
        told: object = None
        try:
            while True:
                outcome = await self._look(watcher, memory)
                if (mark := _mark(outcome)) != told:
                    told = mark
                    yield outcome
                await watcher.wait(self._timing.poll)
        finally:
            await watcher.close()

    async def _look(self, watcher: Watcher, memory: _Memory) -> Revision | SourceTrouble:
        """What is there now."""
        tries = 0
        while True:
            sight = await asyncio.to_thread(self._sight, memory)
            if await watcher.over(_watched(sight)):
                continue  # what happened before the watch stood would otherwise wait for the poll
            if sight == memory.sight and memory.outcome is not None:
                return memory.outcome
            if isinstance(sight.place, Nowhere):
                self.shape = None
                memory.outcome = SourceTrouble(sight.place.reason, self._shown(sight.place.message))
                memory.sight = sight
                return memory.outcome
            self.shape = sight.place.shape
            still = True
            if not sight.place.fixed:
                sight, still = await self._settled(sight, memory)
            outcome = await self._outcome(sight, memory, still=still)
            if outcome is not None:
                # A second change within one tick of the file system's clock leaves no trace in the stamps: what
                # did not keep still is read anew at the next look.
                memory.sight, memory.outcome = (sight, outcome) if still else (None, None)
                return outcome
            tries += 1
            if tries == _MOST_TRIES:
                memory.sight = None
                return SourceTrouble(
                    "Unsettled", f"`{self._origin}` changes while it is read, again and again"
                )
            await asyncio.sleep(_BREATH)

    async def _settled(self, sight: _Sight, memory: _Memory) -> tuple[_Sight, bool]:
        """The tree once it kept still for a while, and whether it did."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._timing.longest
        while True:
            await asyncio.sleep(self._timing.quiet)
            later = await asyncio.to_thread(self._sight, memory)
            if later == sight and later.git is not None:
                return later, True
            if clock() >= end:
                return later, False
            sight = later

    async def _outcome(
        self, sight: _Sight, memory: _Memory, *, still: bool
    ) -> Revision | SourceTrouble | None:
        """What was seen, read; None where it is not there any more."""
        place = sight.place
        if isinstance(place, Nowhere):
            return None
        tree, seen = await asyncio.to_thread(self._read, sight, memory, still)
        commit = place.commit
        if not commit:
            commit = (
                await asyncio.to_thread(annotated, place.real)
                if place.fixed
                else await commit_of(self._git, place.real, seen)
            )
        # A swapped tree may be taken away as soon as the link leads elsewhere, and what is missing then need
        # not show; as long as the link leads here, all of it is there.
        if tree.torn or await asyncio.to_thread(self._changed, sight):
            return None
        if not tree.touched:
            first = next(iter(tree.found), None)
            if first is not None:
                where = "" if first.span.file in {"", "."} else f"{first.span.file}: "
                return SourceTrouble("Unreadable", f"`{self._origin}`: {where}{first.message}")
            return SourceTrouble("Empty", f"there is no policy file (*.yaml, *.yml) in `{self._origin}`")
        return Revision(tree.files, digest_of(tree.files), commit, tree.found)

    def _sight(self, memory: _Memory) -> _Sight:
        place = locate(self._path)
        known = memory.sight
        if isinstance(place, ResolvedPath) and place.fixed and known is not None and known.place == place:
            wanting = isinstance(memory.outcome, Revision) and len(memory.outcome.found) > 0
            if not wanting:
                return known  # never edited, so there is no need to look again
        return _sight(place)

    def _changed(self, sight: _Sight) -> bool:
        place = locate(self._path)
        if isinstance(place, ResolvedPath) and place.fixed:
            return place != sight.place
        return _sight(place) != sight

    def _read(self, sight: _Sight, memory: _Memory, still: bool) -> tuple[Tree, Survey]:
        assert sight.seen is not None
        return memory.texts.read(sight.seen, keep=still), sight.seen

    def _shown(self, message: str) -> str:
        return message.replace(f"`{self._path}`", f"`{self._origin}`")


def open_source(path: str | Path, timing: Timing | None = None) -> PathSource:
    """The source for a path, whatever is there now or later."""
    return PathSource(path, timing)


def _sight(place: ResolvedPath | Nowhere) -> _Sight:
    """A look at a place; blocks."""
    if isinstance(place, Nowhere):
        return _Sight(place)
    seen = survey(place.real, place.boundary)
    return _Sight(place, seen) if place.fixed else _Sight(place, seen, git_stamps(place.real))


def _mark(outcome: Revision | SourceTrouble) -> object:
    """What tells an outcome from the one before."""
    if isinstance(outcome, SourceTrouble):
        return outcome
    return outcome.name, outcome.digest, tuple(outcome.found)


def _watched(sight: _Sight) -> dict[str, Watched]:
    """The directories in which a change may concern us."""
    watched: dict[str, Watched] = {}

    def add(directory: str, name: str, identity: tuple[int, int]) -> None:
        known = watched.get(directory)
        names = frozenset() if known is None else known.names
        watched[directory] = Watched(identity, None if names is None else names | {name})

    place = sight.place
    if isinstance(place, ResolvedPath) and not place.fixed and sight.seen is not None:
        for directory, identity in sight.seen.directories.items():
            watched[directory] = Watched(identity)
        # What a link in the tree leads to may stand elsewhere; its directory is told from others by its path.
        for file in sight.seen.files.values():
            directory, name = os.path.split(file.real)
            if directory not in sight.seen.directories:
                add(directory, name, (0, 0))
        add(os.path.dirname(place.real), os.path.basename(place.real), (0, 0))
    for directory, name, identity in place.links:
        add(directory, name, identity)
    if isinstance(place, Nowhere):
        add(place.nearest, place.missing, place.nearest_identity)
    return watched
