"""What stands in a tree, without reading it: policy files with the stamps that tell one state from the next."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from koordpolicy.diagnostics import Diagnostics, Span
from koordpolicy.diagnostics.escaping import is_plain, one_line
from koordpolicy.source import limits

SUFFIXES = (".yaml", ".yml")
_NEARLY = (*SUFFIXES, ".json")
"""Endings in any case of names that somebody may take for those of policies."""

Stamp = tuple[int, int, int, int, int]
"""Device, inode, size in bytes, times of the last change of content and of inode in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A file that was seen: where it really is, links resolved, and what it was like."""

    real: str
    stamp: Stamp


@dataclass(slots=True)
class Survey:
    """One look over a tree. Two that are equal saw the same state.

    `files` stand by path relative to the tree, in reading order, each real file once; `directories` by real
    path, with device and inode. `vanished` says that something went while it was looked at. `nearly` are files, real
    ones by path, whose names nearly are those of policies; they are no part of the state.
    """

    files: dict[str, Sighting] = field(default_factory=dict)
    directories: dict[str, tuple[int, int]] = field(default_factory=dict)
    found: Diagnostics = field(default_factory=Diagnostics)
    vanished: bool = False
    nearly: dict[str, str] = field(default_factory=dict, compare=False)


def survey(root: str, boundary: str, shown: str = "") -> Survey:
    """Look over the tree at `root`, a real path of a directory or a file.

    Hidden entries are passed over. Links are followed within `boundary`, but never in a circle and never
    into `.git`. Findings name files by their path below `shown`. Raises nothing: what cannot be looked at
    is a finding, and so is a file whose path is not text that everybody sees the same: `files` has none.
    """
    look = _Look(Survey(), boundary, shown, plain=is_plain(shown))
    try:
        status = os.stat(root)
    except OSError as error:
        look.missing(error, "")
        return look.survey
    if stat.S_ISDIR(status.st_mode):
        look.directory(root, "", status, ())
    else:
        look.file(os.path.basename(root), root, status)
    return look.survey


class _Full(Exception):
    """There is more than anyone would want read; the message says of what."""


@dataclass(slots=True)
class _Look:
    survey: Survey
    boundary: str
    shown: str
    entries: int = 0
    plain: bool = True
    """Whether `shown` is plain text."""
    seen: set[str] = field(default_factory=set)

    def directory(self, real: str, path: str, status: os.stat_result, trail: tuple[str, ...]) -> None:
        """Everything below a directory; `path` is what it is called, `trail` the directories above."""
        try:
            self._below(real, path, status, trail)
        except _Full as full:
            if trail:
                raise
            self.say(
                "", "KP004", f"there are more than {full} here", "name the directory that holds the policies"
            )

    def _below(self, real: str, path: str, status: os.stat_result, trail: tuple[str, ...]) -> None:
        if real in self.survey.directories:
            return  # by another link; its files are there already
        self.survey.directories[real] = (status.st_dev, status.st_ino)
        trail = (*trail, real)
        for name in self._names(real, path):
            inner = f"{path}/{name}" if path else name
            place = f"{real}/{name}"
            try:
                status = os.lstat(place)
                if stat.S_ISLNK(status.st_mode):
                    led = self._follow(place, inner)
                    if led is None:
                        continue
                    place, status = led
                if stat.S_ISDIR(status.st_mode):
                    if place in trail or len(trail) > limits.READ.depth:
                        circle = place in trail
                        self.say(
                            inner,
                            "KP001",
                            "the directory contains itself, by a link"
                            if circle
                            else "directories are too deep",
                            "remove the link"
                            if circle
                            else f"more than {limits.READ.depth} levels are not read",
                        )
                        continue
                    self.directory(place, inner, status, trail)
                elif name.endswith(SUFFIXES):
                    self.file(inner, place, status)
                elif name.lower().endswith(_NEARLY) and stat.S_ISREG(status.st_mode):
                    self.survey.nearly[inner] = place
            except OSError as error:
                self.missing(error, inner)

    def _names(self, real: str, path: str) -> Iterator[str]:
        names: list[str] = []
        try:
            with os.scandir(real) as entries:
                for entry in entries:
                    names.append(entry.name)
                    self.entries += 1
                    if self.entries > limits.READ.entries:
                        raise _Full(f"{limits.READ.entries:,} entries")
        except OSError as error:
            self.missing(error, path)
            return
        for name in sorted(names):
            if not name.startswith("."):
                yield name

    def _follow(self, link: str, path: str) -> tuple[str, os.stat_result] | None:
        """Where a link ends, if that concerns us and is permitted."""
        concerns_us = path.endswith(SUFFIXES)
        try:
            real = os.path.realpath(link, strict=True)
            status = os.stat(real)
        except OSError as error:
            # A name that is no policy's could be that of a directory, but nothing says so.
            if concerns_us:
                lost = isinstance(error, FileNotFoundError)
                why = "leads to nothing" if lost else f"cannot be followed: {error.strerror}"
                self.say(path, "KP001", f"the link {why}", "remove or mend it")
            return None
        if not (concerns_us or stat.S_ISDIR(status.st_mode)):
            return None
        if not is_below(real, self.boundary):
            self.say(
                path,
                "KP001",
                "the link leads out of the tree",
                "keep what it leads to inside the tree, and link to it there",
            )
            return None
        return real, status

    def file(self, path: str, real: str, status: os.stat_result) -> None:
        """A file that shall be read."""
        if real in self.seen:
            return
        if not stat.S_ISREG(status.st_mode):
            self.say(path, "KP001", "this is not a regular file", "remove it, or give it another name")
            return
        self.seen.add(real)
        if len(self.seen) > limits.READ.files:
            raise _Full(f"{limits.READ.files:,} files")
        if not (self.plain and path.isprintable()) and not is_plain(shown := str(Path(self.shown, path))):
            self.say(
                path,
                "KP001",
                f"the name `{one_line(shown)}` is not plain text",
                "rename it: policies cannot be told apart by bytes that are not UTF-8, or by characters that do not show",
            )
            return
        # Most paths are so short that their bytes need not be counted.
        if len(path) * 4 > limits.READ.path and len(os.fsencode(path)) > limits.READ.path:
            self.say(
                path,
                "KP004",
                f"the path has more than {limits.READ.path:,} bytes",
                "move the file further up",
            )
            return
        self.survey.files[path] = Sighting(real, stamp(status))

    def missing(self, error: OSError, path: str) -> None:
        """Something that was there cannot be looked at."""
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            self.survey.vanished = True
            return
        self.say(path, "KP001", f"it cannot be read: {error.strerror}", "mend its permissions")

    def say(self, path: str, code: str, message: str, help: str) -> None:
        place = str(Path(self.shown, path))
        self.survey.found.add(code, Span.at(one_line(place)), message, help=help)


def stamp(status: os.stat_result) -> Stamp:
    """What is compared to tell whether a file has changed."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_below(real: str, boundary: str) -> bool:
    """Whether a real path lies within a directory (or is it), and not within Git's own part of it."""
    inner = os.path.relpath(real, boundary).split(os.sep)
    return inner[0] != os.pardir and ".git" not in inner


def tree_around(real: str) -> str:
    """The directory whose inside belongs together with a path: the Git work tree it lies in, else itself."""
    directory = real if os.path.isdir(real) else os.path.dirname(real)
    return work_tree_of(directory) or directory


def work_tree_of(directory: str) -> str | None:
    """The top of the Git work tree that a real directory lies in, if it does."""
    while True:
        if os.path.lexists(os.path.join(directory, ".git")):
            return directory
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above
