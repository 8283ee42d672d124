"""Where a path leads at this moment: links resolved once, and what the way says about the tree.

Three shapes are told apart, and each look tells anew:

* a plain directory or file, edited in place;
* a link whose target is named after a Git commit, as git-sync makes them: the tree behind it never changes;
  what changes is the link, in one step;
* a volume of Kubernetes (ConfigMap, Secret, projected), whose `..data` is such a link.
"""

import errno
import os
import re
import stat
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from koordpolicy.source.survey import tree_around

COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
DATA: Final = "..data"
_MOST_LINKS: Final = 40


class TreeShape(StrEnum):
    """How a tree comes to change."""

    DIRECTORY = "directory"
    LINK = "link"
    VOLUME = "volume"


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """Where a path led.

    `real` is the path without links, `identity` its device and inode. Links in the tree may lead anywhere
    below `boundary`. `commit` is what a link's target is called, if that is a commit's name. `links` are the
    links on the way, as (real directory, name, its device and inode): a change of one may lead elsewhere.
    """

    shape: TreeShape
    real: str
    identity: tuple[int, int]
    boundary: str
    commit: str
    links: tuple[tuple[str, str, tuple[int, int]], ...]

    @property
    def fixed(self) -> bool:
        """Whether the tree is only ever replaced as a whole."""
        return self.shape is not TreeShape.DIRECTORY


@dataclass(frozen=True, slots=True)
class Nowhere:
    """A path that leads to nothing for now; `links` as above.

    `nearest` is the last directory on the way, `missing` the name that was looked for in it.
    """

    reason: str
    message: str
    nearest: str
    missing: str
    nearest_identity: tuple[int, int]
    links: tuple[tuple[str, str, tuple[int, int]], ...]


@dataclass(slots=True)
class _Walk:
    current: str
    pending: list[str]
    links: list[tuple[str, str, tuple[int, int]]]
    targets: list[str]
    wanted: str = ""


def locate(path: str) -> ResolvedPath | Nowhere:
    """Follow an absolute path, each link once; blocks."""
    walk = _Walk("/", _parts(path), [], [])
    try:
        status = _follow(walk)
        if stat.S_ISDIR(status.st_mode) and os.path.islink(os.path.join(walk.current, DATA)):
            walk.pending.append(DATA)
            status = _follow(walk)
    except OSError as error:
        return _nowhere(path, walk, error)
    shape, boundary, commit = TreeShape.DIRECTORY, "", ""
    named = {os.path.basename(target.rstrip("/")) for target in walk.targets}
    above = walk.current.split("/")
    for depth, name in enumerate(above):
        if name in named and COMMIT.fullmatch(name):
            shape, boundary, commit = TreeShape.LINK, "/".join(above[: depth + 1]), name
        elif name in named and name.startswith("..") and any(link[1] == DATA for link in walk.links):
            shape, boundary, commit = TreeShape.VOLUME, "/".join(above[: depth + 1]), ""
    return ResolvedPath(
        shape,
        walk.current,
        (status.st_dev, status.st_ino),
        boundary or tree_around(walk.current),
        commit,
        tuple(walk.links),
    )


def _parts(path: str) -> list[str]:
    """The components of a path, the last first, so that the next one is taken from the end."""
    return [part for part in reversed(path.split("/")) if part not in {"", "."}]


def _follow(walk: _Walk) -> os.stat_result:
    """Take all pending components; raises OSError where the way ends early."""
    status = os.lstat(walk.current)
    while walk.pending:
        name = walk.wanted = walk.pending.pop()
        if name == "..":
            walk.current = os.path.dirname(walk.current)
            status = os.lstat(walk.current)
            continue
        here = os.path.join(walk.current, name)
        inner = os.lstat(here)
        if not stat.S_ISLNK(inner.st_mode):
            walk.current, status = here, inner
            continue
        if len(walk.links) == _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(here)
        walk.links.append((walk.current, name, (status.st_dev, status.st_ino)))
        walk.targets.append(target)
        walk.pending.extend(_parts(target))
        if target.startswith("/"):
            walk.current = "/"
            status = os.lstat("/")
    return status


def _nowhere(path: str, walk: _Walk, error: OSError) -> Nowhere:
    try:
        status = os.stat(walk.current)
        identity = (status.st_dev, status.st_ino)
    except OSError:
        identity = (0, 0)
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        reason, message = "Unreadable", f"`{path}` cannot be read: {error.strerror}"
    elif walk.links:
        reason, message = "Missing", f"`{path}` leads to nothing: a link on the way is broken"
    else:
        reason, message = "Missing", f"`{path}` does not exist"
    return Nowhere(reason, message, walk.current, walk.wanted, identity, tuple(walk.links))
