"""What a command writes to, and how: streams, colour, width, progress."""

import os
import re
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Final, TextIO

from koordpolicy.diagnostics.escaping import one_line, safe

MINIMUM_WIDTH = 60
_DUMB: Final = "dumb"
"""What TERM says of a terminal that obeys nothing."""

_COLOURS: Final = re.compile(r"(\x1b\[[0-9;]*m)")


class CannotWriteError(Exception):
    """The result cannot be written; the message says why."""


@dataclass(slots=True)
class Terminal:
    """Standard output for results, standard error for everything said along the way.

    Colour is used on a terminal only, never on a dumb one or with NO_COLOR set. Nothing else that a terminal would obey is ever
    written, whatever a command hands over.
    """

    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    given: BinaryIO | None = None

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
        return max(MINIMUM_WIDTH, shutil.get_terminal_size((80, 24)).columns) if self.out.isatty() else 80

    def print(self, text: str = "") -> None:
        """A result. Raises `CannotWriteError`, and `BrokenPipeError` where the reader has seen enough."""
        shown = _obeyed(text) if self.colour() else safe(text)
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
        with suppress(OSError):
            self.err.write((_obeyed(text) if self.colour(self.err) else safe(text)) + "\n")
            self.err.flush()

    def progress(self, text: str) -> None:
        """Where long work stands: on a terminal a line that replaces itself, else nothing."""
        if self._replaces_lines():
            with suppress(OSError):
                self.err.write("\r\x1b[K" + one_line(text)[: self.width - 1])
                self.err.flush()

    def end_progress(self) -> None:
        """Clear the line of `progress`."""
        if self._replaces_lines():
            with suppress(OSError):
                self.err.write("\r\x1b[K")
                self.err.flush()

    def _replaces_lines(self) -> bool:
        return self.err.isatty() and os.environ.get("TERM") != _DUMB


def _obeyed(text: str) -> str:
    """The text with its colours, and all else made safe."""
    if "\x1b" not in text:
        return safe(text)
    return "".join(part if at % 2 else safe(part) for at, part in enumerate(_COLOURS.split(text)))
