"""Checkpoints of peaks on disk: a file each, for the next process."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from koordpolicy.files import replace_file

DIRECTORY: Final = "peaks"
_MOST_BYTES: Final = 1 << 20
"""A larger file is not one that we wrote."""
_SUFFIX: Final = ".json"
_LONGEST: Final = 200


class PeakFiles:
    """One file a pod or group below the state directory. Whatever the disk does, peaks are predicted without it."""

    def __init__(self, state_directory: str | Path) -> None:
        self.directory = Path(state_directory) / DIRECTORY
        self.trouble = ""
        """Why the last file was not written; empty when it was."""

    def load(self, most: int) -> Iterator[Mapping[str, Any]]:
        """What the files hold, at most so many of them; those that hold nothing of ours are removed."""
        try:
            found = sorted(self.directory.glob(f"*{_SUFFIX}"))
        except OSError as error:
            self.trouble = str(error)
            return
        for path in found[most:]:
            self._remove(path)
        for path in found[:most]:
            said = _said(path)
            if said is None or path.name != _name(str(said.get("key", ""))):
                self._remove(path)
            else:
                yield said

    def save(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Keep the checkpoints of some."""
        self.trouble = ""
        for record in records:
            path = self.directory / _name(str(record["key"]))
            try:
                self.directory.mkdir(parents=True, exist_ok=True)
                replace_file(path, json.dumps(record, separators=(",", ":")).encode())
            except OSError as error:
                self.trouble = str(error)
                return

    def remove(self, keys: Iterable[str]) -> None:
        """Remove the checkpoints of some, where there are any."""
        for key in keys:
            self._remove(self.directory / _name(key))

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.trouble = str(error)


def _said(path: Path) -> Mapping[str, Any] | None:
    try:
        if path.is_symlink() or path.stat().st_size > _MOST_BYTES:
            return None
        said = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _name(key: str) -> str:
    return quote(key, safe="")[:_LONGEST] + _SUFFIX
