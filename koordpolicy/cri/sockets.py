"""Unix sockets by their paths: a server takes away its own alone, not that of the one who came after it."""

from contextlib import suppress
from pathlib import Path


class OwnSocket:
    """The socket of a server at a path: bound at `early`, put in its place, and taken away.

    gRPC takes away whatever stands at the path that it has bound, once it has ended: so that path is never the one that clients know.
    """

    def __init__(self, path: Path) -> None:
        self.early = path.with_name(f".{path.name}")
        self._path = path
        self._placed: tuple[int, int] | None = None

    def prepare(self) -> None:
        """Make the directory, and take away what one left that was killed before it was in place. Raises OSError."""
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.early.unlink(missing_ok=True)

    def place(self, mode: int) -> None:
        """It is bound: put it in its place, instead of what a killed process left there. Raises OSError."""
        self.early.chmod(mode)
        stat = self.early.lstat()
        self.early.replace(self._path)
        self._placed = stat.st_dev, stat.st_ino

    def unlink(self) -> None:
        """Take it away, before it is closed: as long as it is open, no other file has its number."""
        with suppress(FileNotFoundError):
            stat = self._path.lstat()
            if self._placed == (stat.st_dev, stat.st_ino):
                self._path.unlink()
        self._placed = None
