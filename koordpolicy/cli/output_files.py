"""Writing files that commands are told to write, which may come to lie in a tree that somebody else made."""

import os
import stat
from pathlib import Path

from koordpolicy.cli.command import CannotRunError
from koordpolicy.files import replace_file


def put_text(file: Path, text: str) -> None:
    """Write a file whole or not at all. What stands there is replaced, a link, too: what it leads to stays as it is, but for what takes
    a stream (`/dev/stdout`, a pipe), which gets the text. Raises `CannotRunError`.
    """
    data = text.encode("utf-8", "surrogatepass")
    try:
        if _takes_a_stream(file):
            with file.open("wb") as stream:
                stream.write(data)
        elif file.is_dir():
            raise CannotRunError(f"`{file}` is a directory: name a file")
        else:
            replace_file(file, data, _mode(file))
    except OSError as error:
        raise CannotRunError(f"`{file}` cannot be written: {error.strerror}") from None


def put_below(root: Path, path: str | Path, text: str) -> Path:
    """Write a file below a directory, and the directories between; where it stands. Raises `CannotRunError`."""
    file = root / path
    refuse_links(root, file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRunError(f"`{error.filename}` cannot be written: {error.strerror}") from None
    put_text(file, text)
    return file


def refuse_links(root: Path, file: Path) -> None:
    """Nothing is written through a link below `root`, which may lead anywhere. Raises `CannotRunError`."""
    for folder in (parent for parent in file.parents if root in parent.parents):
        if folder.is_symlink():
            raise CannotRunError(f"`{folder}` is a link, and nothing is written through links: remove it")


def _mode(file: Path) -> int:
    """The permissions of the file that is there, else those of any new one of this process."""
    if file.is_file() and not file.is_symlink():
        return stat.S_IMODE(file.stat().st_mode)
    withheld = os.umask(0o077)
    os.umask(withheld)
    return 0o666 & ~withheld


def _takes_a_stream(file: Path) -> bool:
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
