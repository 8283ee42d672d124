"""The layout that git-sync made known: a store, a tree a commit, and a link that is swapped in one step.

    DIRECTORY/.git                  objects; no tree of its own
    DIRECTORY/.worktrees/COMMIT     a tree, with a file `.git` that refers back
    DIRECTORY/LINK                  relative link to the tree that counts

Consumers know the link alone, and that its target is named after the commit.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from koordpolicy.source.git.program import Git, GitFailed
from koordpolicy.source.git.size import DiskGrowth, Measure, SyncLimits, sizes, want_room
from koordpolicy.source.git.trouble import SyncError, explained
from koordpolicy.source.place import COMMIT

FETCHED: Final = "refs/koordpolicy/fetched"
_MARK: Final = "koordpolicy-sync"
"""A file in `.git`: whoever holds its lock works here, and a `.git` without it is somebody else's."""
_ATTRIBUTES: Final = "* -text -filter -ident -working-tree-encoding\n"
"""Trees hold the very bytes of the commit: no program is run on them, whatever Git is configured to do."""
_TEMPORARY: Final = "tmp-link"


class GitStore:
    """The layout below a directory, which is made where it is missing. One process at a time works on it.

    Trees hold all of a commit, or what it has at `paths`. Git's commands may take `seconds` each, and bring and
    write what `limits` permit.
    """

    def __init__(
        self,
        git: Git,
        directory: Path,
        link: Path,
        seconds: float,
        paths: Sequence[str] = (),
        limits: SyncLimits | None = None,
    ) -> None:
        self.limits = limits or SyncLimits()
        self.directory = Path(os.path.abspath(directory))
        self.link = self.directory / link
        self.git_directory = self.directory / ".git"
        self._trees = self.directory / ".worktrees"
        self._git = git
        self._seconds = seconds
        self._paths = paths
        self._lock: int | None = None
        self._whole: set[str] = set()

    def tree(self, commit: str) -> Path:
        """Where the tree of a commit stands, if it does."""
        return self._trees / commit

    @property
    def current(self) -> str:
        """The commit that the link leads to, "" where it leads to none of ours."""
        try:
            target = self.link.parent / os.readlink(self.link)
        except OSError:
            return ""
        return target.name if self._is_ours(target) and target.is_dir() else ""

    def _is_ours(self, target: Path) -> bool:
        """Whether a link with this target is one that we, or git-sync, made here."""
        named = COMMIT.fullmatch(target.name) is not None
        return named and os.path.realpath(target.parent) == os.path.realpath(self._trees)

    async def run(self, *arguments: str) -> str:
        """Git on the store itself. Named outright, so that nothing above is taken for it."""
        return await self._git.run(f"--git-dir={self.git_directory}", *arguments, seconds=self._seconds)

    async def fetch(self, *arguments: str, what: str) -> None:
        """`git fetch`, stopped when it brings more than is permitted; `what` names the repository in messages.

        What a fetch that failed has left goes at once, and all objects go when many fetches have made them too many.
        Raises `GitFailed` and `SyncError`.
        """
        objects = self.git_directory / "objects"
        if await asyncio.to_thread(lambda: sum(sizes(objects)) > self.limits.fetch):
            await self._forget_objects()
        refusal = self.limits.refusal("fetch", f"{what} sends more bytes than are permitted")
        growth = await asyncio.to_thread(
            DiskGrowth, self.directory, (objects,), self.limits.fetch, self.limits.tree.entries, refusal
        )
        try:
            await self._git.run(
                f"--git-dir={self.git_directory}",
                "fetch",
                *arguments,
                seconds=self._seconds,
                guard=growth.check,
            )
        except SyncError:
            await self._forget_objects()
            raise
        except (GitFailed, asyncio.CancelledError):
            _drop_parts(objects)
            raise

    async def _forget_objects(self) -> None:
        """Begin a new store beside trees that are whole, and stay so."""
        whole = set(self._whole)
        await self.begin_anew()
        self._whole = whole

    async def open(self) -> None:
        """Make the store where it is missing, and mend what a crash left; raises `SyncError`."""
        if self._lock is not None and self.git_directory.is_dir():
            return
        self.close()
        try:
            self._lock = await asyncio.to_thread(self._take)
        except OSError as error:
            raise SyncError(
                "DirectoryUnusable", f"`{self.directory}` cannot be used: {error.strerror}"
            ) from error
        await self._begin()
        if current := self.current:
            await self._heal(current)

    def close(self) -> None:
        """Let others work here."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take(self) -> int:
        ours = self.git_directory / _MARK
        if self.git_directory.exists() and not ours.exists():
            raise SyncError(
                "DirectoryUnusable",
                f"`{self.directory}` holds a Git repository of somebody else: name a directory of its own",
            )
        self._trees.mkdir(parents=True, exist_ok=True)
        self.git_directory.mkdir(exist_ok=True)
        lock = os.open(ours, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise SyncError("Busy", f"another process syncs into `{self.directory}`") from None
        # Nobody else is at work here, so locks of Git were left by one who was killed.
        for left in self.git_directory.rglob("*.lock"):
            left.unlink(missing_ok=True)
        _drop_parts(self.git_directory / "objects")
        self._unlock_trees()
        self._drop_temporary_links()
        return lock

    def _unlock_trees(self) -> None:
        """Git locks a tree while it adds it; one that was killed meanwhile would stay locked, and in the way."""
        for left in (self.git_directory / "worktrees").glob("*/locked"):
            left.unlink(missing_ok=True)

    async def _begin(self, object_format: str = "sha1") -> None:
        if not (self.git_directory / "HEAD").is_file():
            await self.run("init", "--quiet", "--template=", f"--object-format={object_format}")
            await self.run("symbolic-ref", "HEAD", "refs/koordpolicy/none")
        information = self.git_directory / "info"
        information.mkdir(exist_ok=True)
        (information / "attributes").write_text(_ATTRIBUTES)

    async def begin_anew(self, object_format: str = "sha1") -> None:
        """Forget all objects, for a store that is broken; trees and link stay."""
        self._whole.clear()
        await asyncio.to_thread(self._empty)
        await self._begin(object_format)

    def _empty(self) -> None:
        for entry in list(self.git_directory.iterdir()):
            if entry.name == _MARK:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    async def _heal(self, commit: str) -> None:
        """See whether the tree that the link leads to is still what was put there."""
        administration = self.git_directory / "worktrees" / commit
        if not administration.is_dir():
            return  # the store was lost; the tree stays as it is until the commit is fetched again
        limits = _limits(administration)
        if (limits.read_text(encoding="utf-8") if limits.exists() else "") != _patterns(self._paths):
            return  # it has other parts than are wanted now
        inside = self._inside(commit, administration)
        with contextlib.suppress(GitFailed):
            said = await self._git.run(
                *inside, "status", "--porcelain", "--ignored", "-z", seconds=self._seconds
            )
            if said:
                await self._git.run(*inside, "reset", "--quiet", "--hard", seconds=self._seconds)
                await self._git.run(*inside, "clean", "-ffdxq", seconds=self._seconds)
            self._whole.add(commit)

    def _inside(self, commit: str, administration: Path) -> tuple[str, ...]:
        """What names a tree to Git, with the limits it was given."""
        named = (f"--git-dir={administration}", f"--work-tree={self.tree(commit)}")
        if not _limits(administration).exists():
            return named
        return ("-c", "core.sparseCheckout=true", "-c", "core.sparseCheckoutCone=false", *named)

    async def check_out(self, commit: str, *, submodules: bool) -> Path:
        """The whole tree of a commit, or what it has at the paths that are wanted; raises `GitFailed`, `SyncError`.

        A tree that passes the limits, or for which the disk has no room, is refused before anything is written.
        """
        tree = self.tree(commit)
        if commit in self._whole and tree.is_dir():
            return tree
        await self._make_room(commit)
        # What was begun before a crash need not be whole. No link leads there, unless it was found broken.
        await asyncio.to_thread(_remove, tree)
        if (self.git_directory / "worktrees" / commit).exists():
            await asyncio.to_thread(self._unlock_trees)
            await self.run("worktree", "prune", "--expire=now")
        await self.run(
            "worktree", "add", "--quiet", "--force", "--detach", "--no-checkout", str(tree), commit
        )
        administration = await asyncio.to_thread(self._refer_back, tree)
        if self._paths:
            await self._limit(administration, commit)
        inside = self._inside(commit, administration)
        await self._git.run(*inside, "reset", "--quiet", "--hard", commit, seconds=self._seconds)
        if submodules:
            await self._add_submodules(tree, commit)
        self._whole.add(commit)
        return tree

    async def _add_submodules(self, tree: Path, commit: str) -> None:
        command = ("submodule", "--quiet", "update", "--init", "--recursive", "--depth=1")
        bound = self.limits.tree
        refusal = self.limits.refusal(
            "bytes", f"the submodules of {commit} bring more bytes than are permitted"
        )
        # Their objects are kept beside the store's worktree, once packed and once as files.
        growth = await asyncio.to_thread(
            DiskGrowth,
            self.directory,
            (tree, self.git_directory / "worktrees" / commit),
            2 * bound.bytes,
            bound.entries,
            refusal,
        )
        try:
            await self._git.run("-C", str(tree), *command, seconds=self._seconds, guard=growth.check)
        except GitFailed as error:
            raise explained(error, "a submodule", commit) from error
        except SyncError:
            await asyncio.to_thread(_remove, tree)
            raise

    async def _make_room(self, commit: str) -> None:
        """See that a tree is within the limits, and that there is room for it, if need be that of stale ones."""
        measure = Measure(commit, self.limits, self._paths)
        await self._git.run(
            f"--git-dir={self.git_directory}", *Measure.LIST, commit, seconds=self._seconds, look=measure.take
        )
        try:
            await asyncio.to_thread(want_room, self.directory, measure.room)
        except SyncError:
            await asyncio.to_thread(self._remove_stale, float("inf"))
            await asyncio.to_thread(want_room, self.directory, measure.room)

    def _refer_back(self, tree: Path) -> Path:
        """Make the tree refer to the store by a relative path, as the volume may be mounted elsewhere."""
        said = (tree / ".git").read_text(encoding="utf-8")
        administration = Path(said.removeprefix("gitdir:").strip())
        (tree / ".git").write_text(f"gitdir: {os.path.relpath(administration, tree)}\n", encoding="utf-8")
        return administration

    async def _limit(self, administration: Path, commit: str) -> None:
        for path in self._paths:
            try:
                await self.run("rev-parse", "--quiet", "--verify", f"{commit}:{path}")
            except GitFailed:
                raise SyncError("PathNotFound", f"commit {commit} has nothing at `{path}`") from None
        limits = _limits(administration)
        limits.parent.mkdir(exist_ok=True)
        limits.write_text(_patterns(self._paths), encoding="utf-8")

    def publish(self, commit: str) -> str:
        """Make the link lead to the tree of a commit, in one step; the commit it led to before. Raises `SyncError`."""
        before = self.current
        target = os.path.relpath(self.tree(commit), os.path.realpath(self.link.parent))
        try:
            self.link.parent.mkdir(parents=True, exist_ok=True)
            if not self.link.is_symlink():
                if self.link.exists():
                    raise SyncError(
                        "LinkInTheWay", f"`{self.link}` is there already, and is no link: remove it"
                    )
            elif not self._is_ours(self.link.parent / os.readlink(self.link)):
                raise SyncError(
                    "LinkInTheWay",
                    f"`{self.link}` is there already, and leads to no tree in `{self._trees}`: remove it",
                )
            self._drop_temporary_links()
            temporary = self.link.parent / _TEMPORARY
            temporary.symlink_to(target)
            temporary.replace(self.link)
            if before and before != commit:
                os.utime(self.tree(before))  # from now on it is stale
        except OSError as error:
            raise SyncError("LinkNotSwapped", f"`{self.link}` cannot be swapped: {error.strerror}") from error
        return before

    def _drop_temporary_links(self) -> None:
        """A link that a crash left between its making and its renaming would be in the way for ever."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            temporary = self.link.parent / _TEMPORARY
            if stat.S_ISLNK(os.lstat(temporary).st_mode) and self._is_ours(
                temporary.parent / os.readlink(temporary)
            ):
                temporary.unlink()

    async def collect(self, stale_before: float) -> int:
        """Remove the trees that were swapped away before a time (seconds since 1970), and what only they needed."""
        removed = await asyncio.to_thread(self._remove_stale, stale_before)
        if removed:
            await self.run("worktree", "prune", "--expire=now")
            await self.run(
                "-c",
                "gc.auto=500",
                "-c",
                "gc.autoPackLimit=20",
                "-c",
                "gc.pruneExpire=now",
                "gc",
                "--auto",
                "--quiet",
            )
        return removed

    def _remove_stale(self, stale_before: float) -> int:
        removed = 0
        current = self.current
        for tree in list(self._trees.iterdir()):
            with contextlib.suppress(FileNotFoundError):
                if (
                    tree.name != current
                    and COMMIT.fullmatch(tree.name)
                    and tree.stat().st_mtime < stale_before
                ):
                    self._whole.discard(tree.name)
                    _remove(tree)
                    removed += 1
        return removed


def _drop_parts(objects: Path) -> None:
    """Remove what Git had begun to write when it was stopped; it never goes on with that."""
    for left in (*objects.glob("pack/tmp_*"), *objects.glob("??/tmp_obj_*")):
        left.unlink(missing_ok=True)


def _remove(tree: Path) -> None:
    if tree.is_symlink():
        tree.unlink()
    elif tree.exists():
        shutil.rmtree(tree)


def _limits(administration: Path) -> Path:
    """The file that says which parts of a commit a tree has."""
    return administration / "info" / "sparse-checkout"


def _patterns(paths: Sequence[str]) -> str:
    """Patterns that fit these paths alone."""
    literal = ("".join(f"\\{one}" if one in "*?[]\\" else one for one in path) for path in paths)
    return "".join(f"/{path}\n" for path in literal)
