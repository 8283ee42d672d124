"""Where commands write that are told to: in place of links that a tree brought, and through none."""

import os
from pathlib import Path

import pytest

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.output_files import put_below, put_text


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path, there: bool) -> None:
    precious, link = tmp_path / "precious", tmp_path / "report.html"
    if there:
        precious.write_text("precious")
    link.symlink_to(precious)
    put_text(link, "text")
    assert not link.is_symlink()
    assert link.read_text() == "text"
    assert precious.exists() == there
    assert not there or precious.read_text() == "precious"


def test_permissions_stay_and_are_those_of_any_new_file(tmp_path: Path) -> None:
    known, new = tmp_path / "known", tmp_path / "new"
    known.write_text("before")
    known.chmod(0o600)
    before = os.umask(0o027)
    try:
        put_text(known, "after")
        put_text(new, "text")
    finally:
        os.umask(before)
    assert [file.stat().st_mode & 0o777 for file in (known, new)] == [0o600, 0o640]


def test_what_takes_a_stream_gets_the_text(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    put_text(Path(f"/dev/fd/{writing}"), "to a pipe")
    os.close(writing)
    with os.fdopen(reading) as stream:
        assert stream.read() == "to a pipe"
    put_text(Path(os.devnull), "nothing")
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_into_a_directory_that_a_link_leads_to(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "imported").symlink_to(outside)
    with pytest.raises(CannotRunError, match=r"imported` is a link"):
        put_below(root, "imported/one.yaml", "text")
    assert not list(outside.iterdir())
    assert put_below(root, "other/one.yaml", "text").read_text() == "text"


@pytest.mark.parametrize("place", ["", "missing/file"])
def test_where_nothing_can_be_written_is_told(tmp_path: Path, place: str) -> None:
    with pytest.raises(CannotRunError):
        put_text(tmp_path / place, "text")
    assert not list(tmp_path.iterdir())
