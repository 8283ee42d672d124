"""The file of a decision log: its owner's alone, and bounded, the file before it kept beside."""

import os
import sys
from pathlib import Path
from typing import Final, Protocol

MOST_BYTES: Final = 100 * 2**20
"""Bytes after which a file is put aside, unless told otherwise."""


class Sink(Protocol):
    """Where lines go. Both methods raise OSError."""

    def write(self, text: str, /) -> object:
        """Take some text."""
        ...

    def flush(self) -> object:
        """Hand on what was taken."""
        ...


class DecisionFile:
    """A file that is added to. Past `most` bytes it becomes `FILE.1`, in place of the one before; 0 is no bound.

    Decisions tell of pods and nodes, so that a new file can be read by its owner alone. Raises OSError.
    """

    def __init__(self, path: str | Path, most: int = MOST_BYTES) -> None:
        self._path = Path(path)
        self._most = most
        self._open()

    def _open(self) -> None:
        number = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(number, "ab")
        self._size = os.fstat(number).st_size

    def write(self, text: str) -> None:
        """Add whole lines."""
        data = text.encode("utf-8", "backslashreplace")
        if self._most and self._size and self._size + len(data) > self._most:
            self._file.close()
            try:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            finally:
                self._open()
        self._file.write(data)
        self._size += len(data)

    def flush(self) -> None:
        """Hand on what was written."""
        self._file.flush()

    def close(self) -> None:
        """Write what is left, and close."""
        self._file.close()


def open_sink(target: str, most: int = MOST_BYTES) -> Sink:
    """Where a decision log goes: `-` is standard output, anything else a file. Raises OSError."""
    return sys.stdout if target == "-" else DecisionFile(target, most)
