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
    """Put a text in a file's place, whole or not at all; links and permissions stay. Raises `CannotRunError`."""
    path = Path(file)
    try:
        path = path.resolve(strict=True)
        replace_file(path, text.encode("utf-8"), path.stat().st_mode & 0o7777)
    except OSError as error:
        raise CannotRunError(f"`{file}` cannot be written: {error.strerror}") from None
