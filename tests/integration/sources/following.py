"""A source under test: what it gives, as it gives it."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from koordpolicy.source import Revision, Source, SourceTrouble
from koordpolicy.source.paths import Timing

EVENTS_ONLY = Timing(quiet=0.05, longest=0.5, poll=600)
"""Nothing is noticed without an event."""
POLLING = Timing(quiet=0.05, longest=0.5, poll=0.1)

PATIENCE = 30.0
"""Seconds until something that should come counts as missing; machines are slow at times."""


class Followed:
    """The outcomes of a source. `next` waits for one; `quiet` says that none came for a while."""

    def __init__(self) -> None:
        self.all: list[Revision | SourceTrouble] = []
        self._read = 0
        self._came = asyncio.Event()

    def put(self, outcome: Revision | SourceTrouble) -> None:
        self.all.append(outcome)
        self._came.set()

    async def next(self) -> Revision | SourceTrouble:
        async with asyncio.timeout(PATIENCE):
            while self._read == len(self.all):
                self._came.clear()
                await self._came.wait()
        self._read += 1
        return self.all[self._read - 1]

    async def revision(self) -> Revision:
        outcome = await self.next()
        assert isinstance(outcome, Revision), outcome
        return outcome

    async def trouble(self) -> SourceTrouble:
        outcome = await self.next()
        assert isinstance(outcome, SourceTrouble), outcome
        return outcome

    async def until(self, commit: str) -> Revision:
        """The revision of that commit; others may come before it."""
        while True:
            outcome = await self.next()
            if isinstance(outcome, Revision) and outcome.commit == commit:
                return outcome

    async def quiet(self, seconds: float = 0.4) -> bool:
        await asyncio.sleep(seconds)
        return self._read == len(self.all)


@asynccontextmanager
async def following(source: Source) -> AsyncIterator[Followed]:
    followed = Followed()

    async def follow() -> None:
        async for outcome in source.revisions():
            followed.put(outcome)

    task = asyncio.create_task(follow())
    try:
        yield followed
    finally:
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        errors = [one for one in results if not isinstance(one, asyncio.CancelledError | None)]
        assert errors == []


def fill(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


class GitSyncLayout:
    """What git-sync does to its root, in its own order: a tree a commit, and a link that is swapped.

    Its program is not to be had here; this follows its documented contract.
    """

    def __init__(self, root: Path, link: str = "repository") -> None:
        self.root = root
        self.link = root / link
        (root / ".git" / "worktrees").mkdir(parents=True)
        (root / ".worktrees").mkdir()

    def tree(self, commit: str) -> Path:
        return self.root / ".worktrees" / commit

    def check_out(self, commit: str, files: Mapping[str, str]) -> None:
        tree = self.tree(commit)
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: ../../.git/worktrees/{commit}\n")
        fill(tree, files)

    def swap(self, commit: str) -> None:
        temporary = self.link.parent / "tmp-link"
        temporary.symlink_to(f".worktrees/{commit}")
        temporary.rename(self.link)

    def publish(self, commit: str, files: Mapping[str, str]) -> None:
        before = self.link.resolve() if self.link.is_symlink() else None
        self.check_out(commit, files)
        self.swap(commit)
        if before is not None and before.exists() and before.name != commit:
            os.utime(before)


class KubeletVolume:
    """What the kubelet does to a ConfigMap volume, in its own order."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._updates = 0
        root.mkdir(exist_ok=True)

    def update(self, files: Mapping[str, str]) -> None:
        self._updates += 1
        data = self.root / "..data"
        before = data.resolve() if data.is_symlink() else None
        fresh = self.root / f"..2024_07_0{self._updates}.1234567"
        fresh.mkdir()
        fill(fresh, files)
        temporary = self.root / "..data_tmp"
        temporary.symlink_to(fresh.name)
        temporary.rename(data)
        keys = {name.split("/")[0] for name in files}
        for key in keys:
            if not (self.root / key).is_symlink():
                (self.root / key).symlink_to(f"..data/{key}")
        for entry in self.root.iterdir():
            if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in keys:
                entry.unlink()
        if before is not None:
            shutil.rmtree(before)
