"""Showing and writing what a command changes in policy files."""

import difflib
from pathlib import Path

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.terminal import Terminal
from koordpolicy.files import replace_file

_STYLES = {"---": "1", "+++": "1", "@@": "36", "+": "32", "-": "31"}


def show_change(file: str, before: str, after: str, how: str, terminal: Terminal) -> None:
    """A unified diff; `how` says what made the new text."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), file, f"{file} ({how})"
    )
    for line in lines:
        shown = line.rstrip("\n")
        style = next((style for mark, style in _STYLES.items() if line.startswith(mark)), "")
        terminal.print(f"\x1b[{style}m{shown}\x1b[0m" if style and terminal.colour() else shown)


def write_text(file: str, text: str) -> None:
    """Put a text in a file's place, whole or not at all; symbolic links and permissions stay.

    Raises `CannotRunError`, also for a file that nobody may write, whoever asks, and for one of several names: what takes
    its place would have one of them alone.
    """
    path = Path(file)
    try:
        path = path.resolve(strict=True)
        known = path.stat()
        if not known.st_mode & 0o222:
            raise CannotRunError(f"`{file}` is read-only; permit writing with `chmod u+w` first")
        if known.st_nlink > 1:
            raise CannotRunError(
                f"`{file}` is one of {known.st_nlink} names of a file (hard links), and would be cut off from the others;"
                " make it a file of its own, or a symbolic link"
            )
        replace_file(path, text.encode("utf-8"), known.st_mode & 0o7777)
    except OSError as error:
        raise CannotRunError(f"`{file}` cannot be written: {error.strerror}") from None
