"""How much a commit, and a repository, may put on our disk: asked of Git before anything is written.

A commit of a few kilobytes can name millions of files, and a megabyte can unfold to gigabytes. What would be too
much is refused while it is only a list; what comes over the wire is watched while it comes.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from koordpolicy.diagnostics.escaping import one_line
from koordpolicy.source.git.trouble import SyncError
from koordpolicy.source.limits import CHECKED_OUT, TreeLimits

_BLOCK: Final = 4096
"""Bytes that a file takes on most disks, however small it is."""
_RESERVE: Final = 64 << 20
_RESERVED_SHARE: Final = 20
"""What stays free for others: a twentieth of the disk, but no more than the bytes above."""
_LONGEST_RECORD: Final = 1 << 16
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class SyncLimits:
    """What a sync takes of a repository.

    `tree` bounds what of a commit is put on the disk, `fetch` the bytes of objects that one fetch may bring. `flag`
    is what raises them, for messages: `--limit`, or "".
    """

    tree: TreeLimits = CHECKED_OUT
    fetch: int = 1 << 30
    flag: str = ""

    def refusal(self, name: str, what: str) -> SyncError:
        """What says that the limit of this name is passed."""
        most = self.fetch if name == "fetch" else getattr(self.tree, name.replace("-", "_"))
        raising = f"; `{self.flag} {name}=N` permits more" if self.flag else ""
        return SyncError("TooLarge", f"{what}, more than {most:,}{raising}")


class Measure:
    """Adds up what `git ls-tree -r -t -l -z` lists, as it comes, and refuses what passes the limits.

    `paths` are the parts that are put on the disk; of the others Git's index has the names. Raises `SyncError`.
    """

    LIST: Final = ("ls-tree", "-r", "-t", "-l", "-z", "--full-tree")

    def __init__(self, commit: str, limits: SyncLimits, paths: Sequence[str] = ()) -> None:
        self.files = 0
        self.bytes = 0
        self._entries = 0
        self._commit = commit
        self._limits = limits
        self._wanted = tuple(path.encode() for path in paths)
        self._rest = b""

    @property
    def room(self) -> int:
        """Bytes of disk that the tree takes, about."""
        return self.bytes + self.files * _BLOCK

    def take(self, chunk: bytes) -> None:
        """More of the list."""
        *records, self._rest = (self._rest + chunk).split(b"\0")
        for record in records:
            self._add(record)
        if len(self._rest) > _LONGEST_RECORD:
            self._check_path(self._rest.partition(b"\t")[2])

    def _add(self, record: bytes) -> None:
        tree = self._limits.tree
        about, _, path = record.partition(b"\t")
        self._entries += 1
        if self._entries > tree.entries:
            raise self._refusal("entries", "has more files and directories than are permitted")
        self._check_path(path)
        if b" tree " in about or not self._is_wanted(path):
            return
        self.files += 1
        if self.files > tree.files:
            raise self._refusal("files", "has more files than are permitted")
        size = about.rpartition(b" ")[2]
        if not size.isdigit():
            return  # a submodule
        self.bytes += int(size)
        if int(size) > tree.file_bytes:
            raise self._refusal("file-bytes", f"has a file of {int(size):,} bytes, `{_shown(path)}`")
        if self.bytes > tree.bytes:
            raise self._refusal("bytes", "has files of more bytes together than are permitted")

    def _check_path(self, path: bytes) -> None:
        if len(path) > self._limits.tree.path:
            raise self._refusal("path", f"has a path of too many bytes, `{_shown(path)}`")
        if path.count(b"/") > self._limits.tree.depth:
            raise self._refusal("depth", f"has directories {path.count(b'/'):,} deep, `{_shown(path)}`")

    def _is_wanted(self, path: bytes) -> bool:
        return not self._wanted or any(path == one or path.startswith(one + b"/") for one in self._wanted)

    def _refusal(self, name: str, what: str) -> SyncError:
        return self._limits.refusal(name, f"commit {self._commit} {what}")


def _shown(path: bytes) -> str:
    shown = one_line(path[: _SHOWN * 4].decode("utf-8", "surrogateescape"))
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"


class DiskGrowth:
    """Looks, while Git works, how much the directories have grown since the beginning.

    `check` raises the `refusal` when it is more than `most` bytes or `entries` files and directories, and `SyncError`
    when the disk below `disk` is nearly full. Blocks.
    """

    def __init__(
        self, disk: Path, directories: Sequence[Path], most: int, entries: int, refusal: SyncError
    ) -> None:
        self._disk = disk
        self._directories = directories
        self._entries = entries
        self._refusal = refusal
        self._most = most
        self._before = self._size(1 << 62, 1 << 62)

    def check(self) -> None:
        """See how things stand."""
        bytes_before, entries_before = self._before
        most, entries = bytes_before + self._most, entries_before + self._entries
        size, count = self._size(most, entries)
        if size > most or count > entries:
            raise self._refusal
        want_room(self._disk, 0)

    def _size(self, most: int, entries: int) -> tuple[int, int]:
        size, count = 0, 0
        for directory in self._directories:
            for one in sizes(directory):
                size, count = size + one, count + 1
                if size > most or count > entries:
                    return size, count
        return size, count


def sizes(directory: Path) -> Iterator[int]:
    """The bytes on the disk of each entry below a directory; what goes meanwhile is passed over. Blocks."""
    pending = [str(directory)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        yield entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
        except OSError:
            continue


def want_room(directory: Path, needed: int) -> None:
    """Raises `SyncError` unless so many bytes can be written below a directory, and some stay free."""
    disk = shutil.disk_usage(directory)
    reserve = min(_RESERVE, disk.total // _RESERVED_SHARE)
    if disk.free < needed + reserve:
        want = f"{needed:,} bytes are needed, " if needed else ""
        raise SyncError(
            "DiskFull",
            f"the disk below `{directory}` is nearly full: {want}{disk.free:,} are free, {reserve:,} stay free",
        )
