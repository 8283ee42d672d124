"""The file of a decision log: private, bounded, and never lost in a restart."""

import io
import json
import stat
from pathlib import Path

import pytest

from koordpolicy.runtime.decision_file import DecisionFile, open_sink
from koordpolicy.runtime.decisions import DecisionLog
from koordpolicy.runtime.metrics import Metrics


def test_a_new_file_is_its_owners_alone_and_one_that_is_there_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    for number in range(2):
        file = DecisionFile(path)
        file.write(f"{number}\n")
        file.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text("utf-8") == "0\n1\n"


def test_a_file_that_would_grow_too_large_is_put_aside_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    file = DecisionFile(path, most=30)
    for number in range(20):
        file.write(f"line {number:04d}\n")  # ten bytes
    file.write("x" * 100 + "\n")  # longer than the bound, but nobody wants half a line
    file.close()
    before = tmp_path / "decisions.jsonl.1"
    assert {one.name for one in tmp_path.iterdir()} == {path.name, before.name}
    assert before.read_text("utf-8").splitlines() == ["line 0018", "line 0019"]
    assert path.read_text("utf-8") == "x" * 100 + "\n"
    assert {stat.S_IMODE(one.stat().st_mode) for one in (path, before)} == {0o600}


def test_without_a_bound_nothing_is_put_aside(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path / "log", most=0)
    for _ in range(100):
        file.write("x" * 100)
    file.close()
    assert (tmp_path / "log").stat().st_size == 10_000


def test_what_is_no_text_is_written_all_the_same(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path / "log")
    file.write("half a character \ud800\n")
    file.close()
    assert (tmp_path / "log").read_text("utf-8") == "half a character \\ud800\n"


def test_standard_output_stays_open(capsys: pytest.CaptureFixture[str]) -> None:
    log = DecisionLog(open_sink("-"), Metrics("test"), "scheduler", every=1)
    log.add({"value": 1})
    log.close()
    print("and more")
    assert capsys.readouterr().out == '{"value": 1}\nand more\n'


class Full(io.StringIO):
    """A disk that is full until there is room."""

    room = False

    def write(self, text: str) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_a_full_disk_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    out, metrics = Full(), Metrics("test")
    log = DecisionLog(out, metrics, "scheduler", every=1)
    for number in range(50):
        log.add({"value": number})
    log.close()
    assert len([one for one in caplog.records if "cannot be written" in one.getMessage()]) == 1
    assert metrics.value("koordpolicy_decision_log_total", result="dropped") == 50
    out.room = True
    again = DecisionLog(out, metrics, "scheduler", every=1)
    again.add({"value": 50})
    again.close()
    assert json.loads(out.getvalue()) == {"value": 50}
