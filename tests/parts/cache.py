"""The directory outside the checkout that holds what was built or unpacked, and locks for those who fill it."""

import fcntl
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

Tell: TypeAlias = Callable[[str], None]
"""Where progress is told, a line at a time."""

FAILURE_HOLDS = 900.0
"""Seconds for which a failed attempt is not repeated by others: one run of the suite asks many times."""


def tell(line: str) -> None:
    """Progress on standard error."""
    print(line, file=sys.stderr, flush=True)


def directory() -> Path:
    """The cache of parts; it is there afterwards."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    found = Path(base) / "koordpolicy" / "parts"
    found.mkdir(parents=True, exist_ok=True)
    return found


def content_key(*contents: bytes | str) -> str:
    """16 hex digits that change with any of the contents."""
    digest = hashlib.sha256()
    for content in contents:
        data = content.encode() if isinstance(content, str) else content
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


@contextmanager
def lock(file: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a file's lock, alone among processes; it goes with the process. `waiting` is called when one has to wait."""
    with file.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            waiting()
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def failure(place: Path) -> str:
    """Why a place could not be filled a short while ago; "" when nobody tried."""
    note = place.with_name(place.name + ".failed")
    try:
        if time.time() - note.stat().st_mtime < FAILURE_HOLDS:
            return note.read_text("utf-8")
    except OSError:
        pass
    return ""


def note_failure(place: Path, reason: str) -> None:
    """Keep why a place could not be filled, so that others need not try; an empty reason forgets it."""
    note = place.with_name(place.name + ".failed")
    if reason:
        note.write_text(reason, "utf-8")
    else:
        note.unlink(missing_ok=True)
