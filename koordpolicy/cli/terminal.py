"""What a command writes to, and how: streams, colour, width, progress."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Final, TextIO

from koordpolicy.diagnostics.escaping import one_line, safe

MINIMUM_WIDTH = 60
SILENCE: Final = 30.0
"""Seconds without a sign of life, where no line replaces itself."""
_USUAL: Final = 80
"""Columns where nothing says how many there are."""
_DUMB: Final = "dumb"
"""What TERM says of a terminal that obeys nothing."""

_COLOURS: Final = re.compile(r"(\x1b\[[0-9;]*m)")
_WORDS: Final = re.compile(r"(?:`[^`]*`|[^ ])+")
"""What is not broken at the end of a line: words, and what stands between backquotes, there to be copied."""


class CannotWriteError(Exception):
    """The result cannot be written; the message says why."""


@dataclass(slots=True)
class Terminal:
    """Standard output for results, standard error for everything said along the way. `now` tells seconds of any beginning.

    Colour is used on a terminal only, never on a dumb one or with NO_COLOR set. Nothing else that a terminal would obey is ever
    written, whatever a command hands over.
    """

    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    given: BinaryIO | None = None
    now: Callable[[], float] = time.monotonic
    _said_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._said_at = self.now()

    def read(self, most: int) -> bytes:
        """At most so many bytes of standard input, or of what stands in its place. Raises `OSError`, `ValueError`."""
        source = self.given
        if source is None and sys.stdin is not None:
            source = sys.stdin.buffer
        if source is None:
            raise ValueError("it is closed")
        return source.read(most)

    def colour(self, stream: TextIO | None = None) -> bool:
        """Whether a stream (standard output when none is named) shows colour."""
        shown = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != _DUMB
        return shown and (stream or self.out).isatty()

    @property
    def width(self) -> int:
        """Columns to fill; 80 where output goes to no terminal."""
        return max(MINIMUM_WIDTH, _columns(self.out))

    def print(self, text: str = "") -> None:
        """A result. Raises `CannotWriteError`, and `BrokenPipeError` where the reader has seen enough."""
        shown = self._shown(text, self.out)
        try:
            self.out.write(shown if shown.endswith("\n") else shown + "\n")
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CannotWriteError(error.strerror) from error

    def flush(self) -> None:
        """Hand on what was printed until now; raises as `print` does."""
        try:
            self.out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CannotWriteError(error.strerror) from error

    def say(self, text: str) -> None:
        """Something for a person to read, not part of the result. Where nobody can, it is lost."""
        self._said_at = self.now()
        with suppress(OSError):
            self.err.write(self._shown(text, self.err) + "\n")
            self.err.flush()

    def complain(self, text: str) -> None:
        """As `say`, of what went wrong: on a terminal in lines that fit, so that no word is cut; else each line as it is."""
        if self.err.isatty():
            text, width = self._shown(text, self.err), _columns(self.err)
            text = "\n".join(part for line in text.split("\n") for part in _wrapped(line, width))
        self.say(text)

    def progress(self, text: str, line: str = "") -> None:
        """Where long work stands: on a terminal `text`, which replaces itself; elsewhere, as in logs of CI, `line` (`text` when
        empty) after each `SILENCE`.
        """
        if self._replaces_lines():
            with suppress(OSError):
                self.err.write("\r\x1b[K" + one_line(text)[: _columns(self.err) - 1])
                self.err.flush()
        elif self.now() - self._said_at >= SILENCE:
            self.say(one_line(line or text))

    def end_progress(self) -> None:
        """Clear the line of `progress`."""
        if self._replaces_lines():
            with suppress(OSError):
                self.err.write("\r\x1b[K")
                self.err.flush()

    def _shown(self, text: str, stream: TextIO) -> str:
        """The text as it may stand in a stream."""
        return _obeyed(text) if self.colour(stream) else safe(text)

    def _replaces_lines(self) -> bool:
        return self.err.isatty() and os.environ.get("TERM") != _DUMB


def _obeyed(text: str) -> str:
    """The text with its colours, and all else made safe."""
    if "\x1b" not in text:
        return safe(text)
    return "".join(part if at % 2 else safe(part) for at, part in enumerate(_COLOURS.split(text)))


def _columns(stream: TextIO) -> int:
    """Columns of a stream, each of which may be another terminal; 80 where it goes to none."""
    if not stream.isatty():
        return _USUAL
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told[:4]) > 0:
        return int(told[:4])
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL
    except (OSError, ValueError):
        return _USUAL  # it has no file below, or one that does not say


def _wrapped(line: str, width: int) -> Iterator[str]:
    """A line in parts that fit, broken between words alone; all but the first are indented."""
    if len(_COLOURS.sub("", line)) <= width:
        yield line
        return
    indent = " " * (len(line) - len(line.lstrip(" ")))
    shown, filled = indent, 0
    for word in _words(line, width):
        length = len(_COLOURS.sub("", word))
        if filled and len(indent) + filled + 1 + length > width:
            yield shown
            indent = indent or "  "
            shown, filled = indent, 0
        shown, filled = (f"{shown} {word}", filled + 1 + length) if filled else (shown + word, length)
    yield shown


def _words(line: str, width: int) -> Iterator[str]:
    """What stays whole; what stands between backquotes is broken where it would fill a line by itself."""
    for word in _WORDS.findall(line):
        yield from (word,) if len(word) + 2 < width else word.split(" ")
