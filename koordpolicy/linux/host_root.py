"""The machine's own kernel files, and no way out of the trees that are named."""

import ctypes
import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from koordpolicy.linux.errors import KernelFileError, NoSuchFile, OutsideRoot, of_os_error
from koordpolicy.linux.root import CGROUPS, KUBELET, MOST_READ, PROC, RESCTRL, SYS, HeldDirectory, HeldFile

HOST_TREES: Final[Mapping[str, Path]] = MappingProxyType(
    {
        CGROUPS: Path(CGROUPS),
        RESCTRL: Path(RESCTRL),
        SYS: Path(SYS),
        PROC: Path(PROC),
        KUBELET: Path(KUBELET),
    }
)
"""The trees of the node where an agent runs outside of containers."""

_OPENAT2: Final = 437
"""The system call's number, the same on every architecture."""
_BENEATH: Final = 0x08
_NO_SYMLINKS: Final = 0x04
_NO_MAGICLINKS: Final = 0x02
_ATTEMPTS: Final = 8
"""The kernel asks to try anew where a tree is renamed while it follows `..` of a link."""

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PATH: Final = os.O_PATH | os.O_CLOEXEC
_CHUNK: Final = 1 << 16
_LEAST_PIECE: Final = 2048
"""Bytes. Of a text that goes on the kernel gives more at once: what is shorter is its end."""

_T = TypeVar("_T")


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _HeldHandle:
    """An open file of this machine. The kernel makes its text anew when it is read from its beginning."""

    def __init__(self, path: str, handle: int) -> None:
        self._path = path
        self._handle = handle

    def read(self) -> bytes:
        try:
            piece = os.pread(self._handle, _CHUNK, 0)
            if len(piece) < _LEAST_PIECE:
                return piece
            pieces, total = [piece], len(piece)
            while total < MOST_READ and (piece := os.pread(self._handle, _CHUNK, total)):
                pieces.append(piece)
                total += len(piece)
        except OSError as error:
            raise of_os_error(self._path, error) from error
        return b"".join(pieces)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class _HeldDirectory:
    """An open directory of this machine."""

    def __init__(self, path: str, handle: int) -> None:
        self._path = path
        self._handle = handle

    def links(self) -> int:
        try:
            return os.fstat(self._handle).st_nlink
        except OSError as error:
            raise of_os_error(self._path, error) from error

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class HostRoot:
    """Files of this machine, found in `trees`: each tree's path on the node → where it is mounted here.

    In a container those are mounted elsewhere: `{"/sys/fs/cgroup": Path("/host-cgroup"), ...}`. Where the kernel has
    openat2, it resolves paths beneath a tree; elsewhere they are walked part by part, and no part that is written
    to may be a link.
    """

    def __init__(self, trees: Mapping[str, Path] = HOST_TREES, *, walk: bool = False) -> None:
        self._trees = sorted(trees.items(), key=lambda tree: -len(tree[0]))
        self._opened: dict[str, int] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._walks = walk or not self._has_openat2()

    def close(self) -> None:
        """Close what is held open of the trees."""
        while self._opened:
            os.close(self._opened.popitem()[1])

    def read(self, path: str) -> str:
        return self._done(path, self._read)

    def hold(self, path: str) -> HeldFile:
        handle = self._done(path, lambda tree, inner: self._open(tree, inner, _READ, links=True))
        return _HeldHandle(path, handle)

    def hold_directory(self, path: str) -> HeldDirectory:
        return _HeldDirectory(
            path, self._done(path, lambda tree, at: self._open(tree, at, _DIRECTORY, links=True))
        )

    def write(self, path: str, content: str) -> None:
        self._done(path, lambda tree, inner: self._write(path, tree, inner, content))

    def names(self, directory: str) -> Sequence[str]:
        return sorted(self._done(directory, self._names))

    def exists(self, path: str) -> bool:
        try:
            os.close(self._done(path, lambda tree, inner: self._open(tree, inner, _PATH, links=True)))
        except KernelFileError:
            return False
        return True

    def make_directory(self, path: str) -> None:
        with suppress(FileExistsError):
            self._in_parent(path, lambda name, parent: os.mkdir(name, 0o755, dir_fd=parent))

    def remove_directory(self, path: str) -> None:
        with suppress(NoSuchFile):
            self._in_parent(path, lambda name, parent: os.rmdir(name, dir_fd=parent))

    def open_directory(self, path: str) -> int:
        """A handle of a directory, no link in its path, which the caller closes: counters of groups are asked for by one."""
        return self._done(path, lambda tree, inner: self._open(tree, inner, _DIRECTORY, links=False))

    def _read(self, tree: int, inner: str) -> str:
        handle = self._open(tree, inner, _READ, links=True)
        try:
            pieces, total = [], 0
            while total < MOST_READ and (piece := os.read(handle, _CHUNK)):
                pieces.append(piece)
                total += len(piece)
        finally:
            os.close(handle)
        return b"".join(pieces).decode(errors="replace")

    def _write(self, path: str, tree: int, inner: str, content: str) -> None:
        data = content.encode()
        handle = self._open(tree, inner, _WRITE, links=False)
        try:
            written = os.write(handle, data)
        finally:
            os.close(handle)
        if written != len(data):
            raise KernelFileError(path, f"took {written} of {len(data)} bytes")

    def _names(self, tree: int, inner: str) -> list[str]:
        handle = self._open(tree, inner, _DIRECTORY, links=True)
        try:
            return os.listdir(handle)  # noqa: PTH208 - of a handle, which no link leads away
        finally:
            os.close(handle)

    def _in_parent(self, path: str, act: Callable[[str, int], None]) -> None:
        parent, _, name = path.rpartition("/")

        def inside(tree: int, inner: str) -> None:
            handle = self._open(tree, inner, _PATH | os.O_DIRECTORY, links=False)
            try:
                act(name, handle)
            finally:
                os.close(handle)

        _parts(path)
        self._done(parent, inside)

    def _done(self, path: str, act: Callable[[int, str], _T]) -> _T:
        """What an act gives for a path, told the tree's handle and the path below it; errors name the path."""
        tree, inner = self._tree(path)
        try:
            return act(tree, inner)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EXDEV}:
                raise OutsideRoot(
                    path, "a link leads through this path, or out of its tree", error.errno
                ) from error
            raise of_os_error(path, error) from error

    def _tree(self, path: str) -> tuple[int, str]:
        parts = _parts(path)
        for at, place in self._trees:
            if path == at or path.startswith(f"{at}/"):
                if at not in self._opened:
                    try:
                        self._opened[at] = os.open(place, _PATH | os.O_DIRECTORY)
                    except OSError as error:
                        raise of_os_error(path, error) from error
                return self._opened[at], "/".join(parts[at.count("/") :]) or "."
        raise OutsideRoot(path, "none of the trees that may be touched holds this path")

    def _open(self, tree: int, inner: str, flags: int, *, links: bool) -> int:
        if self._walks:
            return self._walk(tree, inner, flags, links=links)
        resolve = _BENEATH | _NO_MAGICLINKS | (0 if links else _NO_SYMLINKS)
        how = _OpenHow(flags, 0, resolve)
        encoded = os.fsencode(inner)
        for _ in range(_ATTEMPTS):
            handle = self._openat2(tree, encoded, how)
            if handle >= 0:
                return handle
            if ctypes.get_errno() not in {errno.EAGAIN, errno.EINTR}:
                break
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

    def _openat2(self, tree: int, inner: bytes, how: _OpenHow) -> int:
        return int(
            self._libc.syscall(
                ctypes.c_long(_OPENAT2),
                ctypes.c_long(tree),
                ctypes.c_char_p(inner),
                ctypes.byref(how),
                ctypes.c_long(ctypes.sizeof(how)),
            )
        )

    def _has_openat2(self) -> bool:
        # -100 is AT_FDCWD. A filter of system calls may answer for a kernel that has it.
        handle = self._openat2(-100, b".", _OpenHow(_PATH, 0, 0))
        if handle >= 0:
            os.close(handle)
        return handle >= 0

    def _walk(self, tree: int, inner: str, flags: int, *, links: bool) -> int:
        """Open a path part by part, where the kernel cannot keep it beneath the tree by itself."""
        if links:
            top = Path(f"/proc/self/fd/{tree}").resolve()
            found = (top / inner).resolve(strict=True)
            if found != top and top not in found.parents:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            return os.open(found, flags)
        *parents, name = inner.split("/")
        handle = os.dup(tree)
        try:
            for part in parents:
                below = _step(handle, part, _PATH | os.O_DIRECTORY)
                os.close(handle)
                handle = below
            return _step(handle, name, flags)
        finally:
            os.close(handle)


def _step(directory: int, name: str, flags: int) -> int:
    """Open one name in a directory that is no link."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def _parts(path: str) -> list[str]:
    """The parts of an absolute path; none of them may be empty, `.` or `..`."""
    first, *parts = path.split("/")
    if first or not parts or "\0" in path or any(part in {"", ".", ".."} for part in parts):
        raise OutsideRoot(path, "a path of a kernel file is absolute and has no empty parts, `.` or `..`")
    return parts
