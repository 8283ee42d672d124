"""What compiling the built-in pack made, kept on disk from one command to the next.

It is kept as Python keeps its own compiled modules: in a directory of the user's, under a key of all that it was made
from (the pack's texts, the size and time of every file of the program, the versions below it), and as a pickle, which
can do whatever its author pleases. So only what nobody but the user can have written is read: a regular file of the
user's, which no one else may write, in a directory of which the same holds. Whatever else is there is left alone, and
the pack compiled anew. The user's own policies are never kept.
"""

import hashlib
import os
import pickle
import signal
import stat
import sys
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pydantic

import koordpolicy
from koordpolicy.files import replace_file
from koordpolicy.graph import Compiler, Layer
from koordpolicy.runtime.pickling import dumps
from koordpolicy.runtime.policies.packs import BARE, BUILT_IN, OWN, find_pack

SWITCH: Final = "KOORDPOLICY_CACHE"
"""The variable of the environment that turns this off, with the value `off`."""

_MOST_FILES: Final = 3
"""Packs, with checks or without, and versions of the program, that are kept at a time: two megabytes each."""

_PATIENCE: Final = 60.0
"""Seconds that another process may take to compile the pack, which takes one or two."""

_STARTED: Final = time.time_ns()
"""When this module was loaded, by the clock of the files: what changed later is not what runs here."""

_MOST_BYTES: Final = 64 * 2**20
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def pack_remembering(max_cost: int | None = None, *, checked: bool = False) -> Compiler:
    """A compiler that need not compile the built-in pack; `max_cost` as its own, in units.

    One whose revisions are all `checked` elsewhere takes no checks of the pack either, which are most of what is kept.
    """
    learned: set[str] = set()

    def find(name: str) -> Layer | None:
        layer = find_pack(name)
        if layer is not None and name not in learned:
            learned.add(name)  # from then on it is the compiler that remembers
            compiler.learn(results_of(layer, cache_directory(), checked=checked))
        return layer

    compiler = Compiler(find) if max_cost is None else Compiler(find, max_cost)
    return compiler


def kept_results() -> Mapping[Hashable, object]:
    """What compiling the built-in pack made, checks included, where a command has kept it; empty where none has.

    For processes with limits on what they may take, which neither compile it beforehand nor write.
    """
    directory, pack = cache_directory(), find_pack(BUILT_IN)
    key = None if directory is None or pack is None else _key(pack)
    if directory is None or key is None:
        return {}
    return _read(_file(directory, key, checked=False)) or {}


def keep_beforehand(*, checked: bool = False) -> None:
    """Where nothing is kept yet, have a process of its own compile the pack, with `checked` its checks aside: this one would not
    give back the ten megabytes that this takes.

    Call it before this process has threads. Whatever becomes of the other one, what is not kept is compiled here as ever.
    """
    directory, pack = cache_directory(), find_pack(BUILT_IN)
    if directory is None or pack is None or not hasattr(os, "fork"):
        return
    key = _key(pack)
    if key is None or _file(directory, key, checked=checked).exists():
        return
    pid = os.fork()
    if pid == 0:
        try:
            results_of(pack, directory, checked=checked)
        finally:
            os._exit(0)
    until = time.monotonic() + _PATIENCE
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(0.01)


def cache_directory() -> Path | None:
    """Where it is kept; None where it is not to be, or cannot."""
    if os.environ.get(SWITCH) == "off":
        return None
    home = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(OSError, RuntimeError):  # where nobody has a home, or it cannot be written
        # By the specification a relative path is as good as none.
        base = Path(home) if os.path.isabs(home) else Path.home() / ".cache"  # noqa: PTH117 - as text, not resolved
        directory = base / "koordpolicy" / "packs"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(directory.lstat()) and directory.is_dir():
            return directory
    return None


def results_of(pack: Layer, directory: Path | None, *, checked: bool = False) -> Mapping[Hashable, object]:
    """What compiling the pack makes, by what it was made of: from the directory, else made and put there.

    Where it is `checked` elsewhere, what checking makes is left out.
    """
    key = None if directory is None else _key(pack)
    if directory is None or key is None:
        return {}
    file = _file(directory, key, checked=checked)
    known = _read(file)
    if known is not None:
        return known
    compiler = Compiler(lambda name: pack if name == pack.name else None)
    compiler.compile(Layer(OWN, dict([BARE])), checked=checked)
    made = compiler.kept()
    with suppress(OSError):  # a full disk costs time, and nothing else
        replace_file(file, dumps(made))
        _forget_old(directory)
    return made


def _file(directory: Path, key: str, *, checked: bool) -> Path:
    return directory / (f"{key}.checked.pickle" if checked else f"{key}.pickle")


def _read(file: Path) -> Mapping[Hashable, object] | None:
    try:
        # Not through a link, nor waiting for whoever writes a pipe; and what is looked at is what is read.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            status = os.fstat(opened.fileno())
            if not (stat.S_ISREG(status.st_mode) and _is_ours(status) and status.st_size <= _MOST_BYTES):
                return None
            found = pickle.load(opened)  # noqa: S301 - nobody else can have written it
    except (OSError, EOFError, pickle.UnpicklingError, ValueError, MemoryError):
        return None  # none yet, or cut off
    return found if isinstance(found, dict) else None


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE


def _forget_old(directory: Path) -> None:
    kept = sorted(directory.glob("*.pickle"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for file in kept[_MOST_FILES:]:
        file.unlink(missing_ok=True)


def _key(pack: Layer) -> str | None:
    """A digest of all that the results depend on; None where the program on disk is newer than the one that runs."""
    lines = [sys.version, sys.implementation.cache_tag or "", koordpolicy.__version__, pydantic.VERSION]
    for path, size, changed in _program(os.path.dirname(koordpolicy.__file__)):  # noqa: PTH120 - hundreds of paths
        if changed > _STARTED:
            return None
        lines.append(f"{path}\0{size}\0{changed}")
    lines += [f"{file}\0{text}" for file, text in sorted(pack.files.items())]
    return hashlib.sha256("\0\0".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _program(directory: str) -> Iterator[tuple[str, int, int]]:
    """Every Python file below with its size and its time in nanoseconds, which tell Python itself that it changed."""
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _program(entry.path)
