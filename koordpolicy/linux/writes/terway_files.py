"""What Terway, a network plugin, reads of a node: two files of its own directory."""

from pathlib import Path
from typing import Final

from koordpolicy.files import replace_file
from koordpolicy.linux.writes.write import FileOutcome, FileWrite, FileWriteResult

_READABLE: Final = 0o644


class TerwayFiles:
    """Writes a file of Terway's, by the name of a write; with `plan_only` none is written. Empty text removes it."""

    def __init__(self, directory: Path, names: dict[str, str], *, plan_only: bool = False) -> None:
        self._directory = directory
        self._names = names
        self._plan_only = plan_only

    def write(self, write: FileWrite) -> FileWriteResult:
        """Make the file say the write's value. Raises nothing: the result says it."""
        path = self._directory / self._names[write.file]
        text = str(write.value)
        try:
            before = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
            if (before or "") == text and (before is None) == (not text):
                return FileWriteResult(write, FileOutcome.EQUAL, str(path), before)
            if not self._directory.is_dir():
                problem = "Terway is not on this node"
                return FileWriteResult(write, FileOutcome.UNSUPPORTED, str(path), problem=problem)
            if self._plan_only:
                return FileWriteResult(write, FileOutcome.PLANNED, str(path), before)
            if text:
                replace_file(path, text.encode(), _READABLE)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            return FileWriteResult(write, FileOutcome.FAILED, str(path), problem=str(error))
        return FileWriteResult(write, FileOutcome.WRITTEN, str(path), before)
