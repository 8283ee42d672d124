"""Files are replaced as a whole or not at all."""

import stat
from pathlib import Path

import pytest

from koordpolicy.files import replace_file


def test_a_file_is_replaced_and_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    for content in (b"old, and longer", b"new"):
        replace_file(file, content)
        assert file.read_bytes() == content
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_put_in_place_leaves_nothing(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "old").write_text("old", encoding="utf-8")
    with pytest.raises(OSError, match="taken"):
        replace_file(taken, b"new")
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "old"]
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "nowhere" / "file", b"new")
