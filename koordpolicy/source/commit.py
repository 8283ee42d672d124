"""Which commit a tree is, where its place does not say so already."""

import asyncio
import os
import stat
from collections.abc import Container
from pathlib import Path
from typing import Final

from koordpolicy.diagnostics.escaping import is_plain
from koordpolicy.source.git.program import Git, GitFailed
from koordpolicy.source.place import COMMIT
from koordpolicy.source.survey import SUFFIXES, Stamp, Survey, is_below, stamp, work_tree_of

ANNOTATION: Final = ".koordpolicy-commit"
"""A file at the top of a tree that names the commit it was made from, for trees that come without Git."""

_SECONDS: Final = 10.0
_MOST: Final = 4096
"""Bytes of a path, or a commit's name, that are read."""


def annotated(real: str) -> str:
    """The commit that the annotation of a tree names, "" where there is none; blocks."""
    named = _beginning(Path(real, ANNOTATION)).decode("ascii", "replace").strip()
    return named if COMMIT.fullmatch(named) else ""


def _around(real: str) -> tuple[str, str | None]:
    """The directory that a tree is, or a single file stands in, and the top of the Git work tree around."""
    directory = real if os.path.isdir(real) else os.path.dirname(real)
    return directory, work_tree_of(directory)


def _within(seen: Survey, top: str, directory: str) -> tuple[set[str], list[str]]:
    """The files of a tree by path in the work tree, and which of them stand outside of `directory`.

    Links may lead elsewhere in the work tree, so what counts is where files really are.
    """
    real = [file.real for file in seen.files.values()]
    return {os.path.relpath(one, top) for one in real}, [one for one in real if not is_below(one, directory)]


def git_stamps(real: str) -> tuple[Stamp, ...] | None:
    """What changes whenever Git changes the state of the work tree around; None while Git is at work there.

    Empty where there is no work tree. Blocks.
    """
    top = _around(real)[1]
    directory = None if top is None else _git_directory(top)
    if directory is None:
        return ()
    if os.path.exists(os.path.join(directory, "index.lock")):
        return None
    stamps = []
    for name in ("HEAD", "index", "logs/HEAD"):
        try:
            stamps.append(stamp(os.stat(os.path.join(directory, name))))
        except OSError:
            stamps.append((0, 0, 0, 0, 0))
    return tuple(stamps)


def _git_directory(top: str) -> str | None:
    """The directory with HEAD and index of a work tree: `.git`, or what the file of that name refers to."""
    dot = Path(top, ".git")
    if os.path.isdir(dot):
        return str(dot)
    key, _, where = os.fsdecode(_beginning(dot)).partition(":")
    where = where.strip()
    return os.path.join(top, where) if key == "gitdir" and is_plain(where) else None


def _beginning(file: Path) -> bytes:
    """The first bytes of a file, b"" where there is no regular one: a pipe of that name would keep us waiting."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(opened, _MOST) if stat.S_ISREG(os.fstat(opened).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(opened)


async def commit_of(git: Git, real: str, seen: Survey) -> str:
    """The commit whose files the tree at `real` holds unchanged, else what its annotation says, else "".

    Files that are no policies may differ. Without Git's program, or when it does not trust the owner of the
    directory, nothing is known. Git is asked without taking its locks.
    """
    directory, top = await asyncio.to_thread(_around, real)
    if top is None:
        return await asyncio.to_thread(annotated, directory)
    if await asyncio.to_thread(_git_directory, top) is None:
        return ""
    files, elsewhere = _within(seen, top, directory)
    try:
        status = await git.run(
            "--no-optional-locks",
            "-C",
            top,
            "-c",
            "core.fsmonitor=false",
            "status",
            "--porcelain=v2",
            "--branch",
            "--ignored=matching",
            "--untracked-files=all",
            "-z",
            "--",
            directory,
            *elsewhere,
            seconds=_SECONDS,
        )
    except GitFailed:
        return ""
    return _clean_commit(status, files, {part for file in files for part in _parents(file)})


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) + "/" for depth in range(1, len(parts))]


def _clean_commit(status: str, files: Container[str], directories: Container[str]) -> str:
    """The commit that `git status --porcelain=v2 --branch -z` names, unless it names a policy that differs."""
    commit = ""
    entries = iter(status.split("\0"))
    for entry in entries:
        kind = entry[:1]
        if entry.startswith("# branch.oid "):
            named = entry.rpartition(" ")[2]
            commit = named if COMMIT.fullmatch(named) else ""
        elif kind in {"?", "!"}:
            path = entry[2:]
            if path in files or path in directories:
                return ""
        elif kind in {"1", "2", "u"}:
            # 8 fields stand before the path of an ordinary entry, 9 of a rename, 10 of a conflict.
            paths = [entry.split(" ", {"1": 8, "2": 9, "u": 10}[kind])[-1]]
            if kind == "2":
                paths.append(next(entries, ""))
            if any(path.endswith(SUFFIXES) for path in paths):
                return ""
    return commit
