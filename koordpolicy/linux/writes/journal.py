"""What is to be undone should the process be killed: a file of lines, written before the kernel's own files are.

Killing a process loses nothing of it, and what a machine loses as a whole the kernel has lost, too: so nothing waits for
the disk. What another boot has left is not read.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from koordpolicy.files import replace_file
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.files.forms import FileValue
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.root import PROC, KernelRoot
from koordpolicy.linux.writes.write import FileWrite

FILE: Final = "undo.jsonl"
_MOST_BYTES: Final = 64 << 20
_CPUS: Final = "cpus"


@dataclass(frozen=True, slots=True)
class Original:
    """What a file said before it was written, and the last write of it."""

    write: FileWrite
    text: str


class UndoJournal:
    """Originals of files by their writers, at most `most` of them: the oldest is let go where there are more.

    Whatever the disk does, writes go on; `trouble` says why they are not kept.
    """

    def __init__(self, path: Path, boot: str, writers: frozenset[FileWriter], most: int) -> None:
        self.writers = writers
        self.trouble = ""
        self._path = path
        self._boot = boot
        self._most = most
        self._kept: dict[str, Original] = {}
        self._lines = 0
        self._handle: int | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def load(self) -> list[Original]:
        """What a process before has left to undo in this boot; lines that make no sense are passed over."""
        self._kept = {}
        try:
            # A larger file is not one that we wrote: of its beginning nothing is amiss.
            with self._path.open("rb") as file:
                lines = file.read(_MOST_BYTES).decode(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            self.trouble = str(error)
            return []
        if not lines or _said(lines[0]).get("boot") != self._boot:
            return []
        for line in lines[1:]:
            self._take(_said(line))
        self._lines = len(lines)
        return list(self._kept.values())

    def keep(self, key: str, original: Original) -> None:
        """Keep what a file said, before it is written for the first time; what is kept of it already stays."""
        if key in self._kept:
            return
        self._kept[key] = original
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        self._append({"key": key, **_json(original)})

    def drop(self, key: str) -> None:
        """Let go of a file that has its own again, or has ended."""
        if self._kept.pop(key, None) is not None:
            self._append({"key": key})

    def close(self) -> None:
        """Let go of the file on disk, which stays."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _take(self, said: Mapping[str, Any]) -> None:
        key = said.get("key")
        if not isinstance(key, str):
            return
        original = _original(said)
        if original is None or original.write.writer not in self.writers:
            self._kept.pop(key, None)
        elif len(self._kept) < self._most:
            self._kept.setdefault(key, original)

    def _append(self, said: Mapping[str, Any]) -> None:
        try:
            if self._handle is None or self._lines > 2 * len(self._kept) + self._most:
                self._rewrite()
            else:
                os.write(self._handle, f"{json.dumps(said)}\n".encode())
                self._lines += 1
            self.trouble = ""
        except OSError as error:
            self.trouble = f"{self._path}: {error.strerror}"
            self.close()

    def _rewrite(self) -> None:
        """Write all that is kept anew, in place of what there was."""
        self.close()
        lines = [{"boot": self._boot}, *({"key": key, **_json(one)} for key, one in self._kept.items())]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, "".join(f"{json.dumps(line)}\n" for line in lines).encode())
        self._handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._lines = len(lines)


def read_boot(root: KernelRoot) -> str:
    """What tells this boot of the machine from others; empty where the kernel does not say."""
    try:
        return root.read(f"{PROC}/sys/kernel/random/boot_id").strip()
    except KernelFileError:
        return ""


def _json(original: Original) -> dict[str, Any]:
    write = original.write
    value: Any = {_CPUS: sorted(write.value)} if isinstance(write.value, frozenset) else write.value
    return {
        "file": write.file,
        "target": write.target,
        "writer": str(write.writer),
        "value": value,
        "original": original.text,
    }


def _original(said: Mapping[str, Any]) -> Original | None:
    file, target, text = said.get("file"), said.get("target"), said.get("original")
    if not (isinstance(file, str) and isinstance(target, str) and isinstance(text, str)):
        return None
    value = _value(said.get("value"))
    try:
        return (
            None
            if value is None
            else Original(FileWrite(file, value, FileWriter(str(said.get("writer"))), target), text)
        )
    except ValueError:
        return None


def _value(said: Any) -> FileValue | None:
    if isinstance(said, Mapping):
        cpus = said.get(_CPUS)
        whole = isinstance(cpus, list) and all(isinstance(one, int) for one in cpus)
        return frozenset(cpus) if whole and cpus is not None else None
    return said if isinstance(said, int | str) and not isinstance(said, bool) else None


def _said(line: str) -> Mapping[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}  # the last line of a process that was killed in the midst of it
    return said if isinstance(said, dict) else {}
