"""What a command writes to, and how: streams, colour, width, progress."""

import os
import shutil
import sys
from dataclasses import dataclass, field
from typing import TextIO

MINIMUM_WIDTH = 60


@dataclass(slots=True)
class Terminal:
    """Standard output for results, standard error for everything said along the way.

    Colour is used on a terminal only, never with NO_COLOR set.
    """

    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    def colour(self, stream: TextIO | None = None) -> bool:
        """Whether a stream (standard output when none is named) shows colour."""
        return (stream or self.out).isatty() and "NO_COLOR" not in os.environ

    @property
    def width(self) -> int:
        """Columns to fill; 80 where output goes to no terminal."""
        return max(MINIMUM_WIDTH, shutil.get_terminal_size((80, 24)).columns) if self.out.isatty() else 80

    def print(self, text: str = "") -> None:
        """A result."""
        self.out.write(text if text.endswith("\n") else text + "\n")

    def say(self, text: str) -> None:
        """Something for a person to read, not part of the result."""
        self.err.write(text + "\n")
        self.err.flush()

    def progress(self, text: str) -> None:
        """Where long work stands: on a terminal a line that replaces itself, else nothing."""
        if self.err.isatty():
            self.err.write("\r\x1b[K" + text[: self.width - 1])
            self.err.flush()

    def end_progress(self) -> None:
        """Clear the line of `progress`."""
        if self.err.isatty():
            self.err.write("\r\x1b[K")
            self.err.flush()
