"""The texts of surveyed files, read again only where something has changed."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from koordpolicy.diagnostics import Diagnostic, Diagnostics, Span
from koordpolicy.source import limits
from koordpolicy.source.survey import Stamp, Survey, stamp

_COARSE: Final = 1_000_000
"""A time of change without a finer part in nanoseconds comes from a file system that may miss a second change."""


@dataclass(slots=True)
class Tree:
    """Texts by path as users shall see it, and what could not be read (KP001, KP004).

    `touched` are the files that were there to be read, those included that are no policies. `torn` says that
    files changed or went while they were read: the whole may be no state that ever was. `nearly` are the real paths of
    files that are not read because of their names, which nearly are those of policies.
    """

    files: dict[str, str] = field(default_factory=dict)
    found: Diagnostics = field(default_factory=Diagnostics)
    touched: list[str] = field(default_factory=list)
    torn: bool = False
    nearly: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Kept:
    stamp: Stamp
    text: str | Diagnostic


class TreeTexts:
    """Remembers the files of one tree. `shown` is put before their paths."""

    def __init__(self, shown: str = "") -> None:
        self._shown = shown
        self._kept: dict[str, _Kept] = {}

    def read(self, seen: Survey, *, keep: bool = True) -> Tree:
        """The files as surveyed; blocks.

        `keep` says that the tree was still for a while. Otherwise nothing that is read now is remembered: a
        second change within one tick of the file system's clock would leave no trace in the stamps.
        """
        tree = Tree(torn=seen.vanished)
        tree.nearly = {
            str(Path(self._shown, path)) if self._shown else path: real for path, real in seen.nearly.items()
        }
        tree.found.extend(seen.found)
        kept: dict[str, _Kept] = {}
        total = 0
        for path, sighting in seen.files.items():
            shown = str(Path(self._shown, path)) if self._shown else path
            total += min(sighting.stamp[2], limits.READ.file_bytes)
            if total > limits.READ.bytes:
                tree.found.add(
                    "KP004",
                    Span.at(shown),
                    f"the files have more than {limits.READ.bytes:,} bytes together",
                    help="name the directory that holds the policies",
                )
                break
            known = self._kept.get(path)
            if known is None or known.stamp != sighting.stamp:
                read = _read(sighting.real, shown)
                tree.torn |= read.stamp != sighting.stamp
                known = read
            if (keep and sighting.stamp[4] % _COARSE) or known is self._kept.get(path):
                kept[path] = known
            tree.touched.append(shown)
            if isinstance(known.text, str):
                tree.files[shown] = known.text
            else:
                problem = known.text
                tree.found.add(problem.code, problem.span, problem.message, help=problem.help)
        self._kept = kept
        return tree


def tree_of(shown: str, content: bytes) -> Tree:
    """A tree of one file that is not read from the disk, under the name that users shall see."""
    if len(content) > limits.READ.file_bytes:
        text: str | Diagnostic = _problem(
            "KP004", Span.at(shown), f"the text has more than {limits.READ.file_bytes:,} bytes", "split it"
        )
    else:
        text = _decoded(content, shown)
    tree = Tree(touched=[shown])
    if isinstance(text, str):
        tree.files[shown] = text
    else:
        tree.found.add(text.code, text.span, text.message, help=text.help)
    return tree


_GONE: Final[Stamp] = (0, 0, 0, 0, 0)


def _read(real: str, shown: str) -> _Kept:
    """One file, with the stamp it had when it was opened."""
    place = Span.at(shown)
    try:
        # Without O_NONBLOCK a pipe that has taken the file's place would block for ever.
        opened = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return _Kept(_GONE, _problem("KP001", place, "the file went while it was to be read"))
    except OSError as error:
        return _Kept(
            _stamp_of(real),
            _problem("KP001", place, f"the file cannot be read: {error.strerror}", "mend its permissions"),
        )
    try:
        status = os.fstat(opened)
        content = _content(opened, status.st_size) if status.st_size <= limits.READ.file_bytes else b""
    except OSError as error:
        return _Kept(_stamp_of(real), _problem("KP001", place, f"the file cannot be read: {error.strerror}"))
    finally:
        os.close(opened)
    size = max(status.st_size, len(content))
    if size > limits.READ.file_bytes:
        return _Kept(
            stamp(status),
            _problem(
                "KP004",
                place,
                f"the file has {size:,} bytes, more than {limits.READ.file_bytes:,}",
                "split it",
            ),
        )
    return _Kept(stamp(status), _decoded(content, shown))


def _content(opened: int, size: int) -> bytes:
    """The bytes of an open file, at most one more than are permitted, should it grow meanwhile."""
    content = os.read(opened, size + 1)
    while len(content) != size and len(content) <= limits.READ.file_bytes:
        more = os.read(opened, limits.READ.file_bytes + 1 - len(content))
        if not more:
            break
        content += more
    return content


def _stamp_of(real: str) -> Stamp:
    try:
        return stamp(os.stat(real))
    except OSError:
        return _GONE


def _decoded(content: bytes, shown: str) -> str | Diagnostic:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        return _problem(
            "KP001",
            Span.at(shown, line, column),
            f"the file is not UTF-8: byte 0x{content[error.start]:02x} cannot be read",
            "save it as UTF-8",
        )


def _problem(code: str, span: Span, message: str, help: str | None = None) -> Diagnostic:
    return Diagnostic(code, message, span, help=help)
