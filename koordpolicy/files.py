"""Files that are replaced as a whole: whoever reads one finds the old content or the new, even after a crash."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write aside, then put what was written in the file's place; without a `mode`, only its owner may read it.

    The directory has to be there. Raises OSError, and leaves the old file then.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(handle, mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    _sync_directory(path.parent)


class MemoryFile:
    """A file in memory alone, for secrets that libraries take by a path: no disk ever has it, and it goes with the process, however
    that ends. Linux has such files; the path leads there in this process alone. Raises OSError.
    """

    def __init__(self, name: str, data: bytes = b"") -> None:
        self._handle = _in_memory(name, data)
        self._name = name
        self.path = Path(f"/dev/fd/{self._handle}")

    def write(self, data: bytes) -> None:
        """Replace what stands in it as a whole."""
        made = _in_memory(self._name, data)
        try:
            os.dup2(made, self._handle, inheritable=False)
        finally:
            os.close(made)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _in_memory(name: str, data: bytes) -> int:
    handle = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(data)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _sync_directory(directory: Path) -> None:
    """Make the new name survive a crash of the machine, where the file system can."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
