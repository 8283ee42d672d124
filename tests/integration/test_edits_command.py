"""`check --fix`, and standard input in place of files, as a user runs them."""

import io
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import Compiler
from koordpolicy.runtime.policies.pack_cache import pack_remembering

WRONG = """\
apiVersion: koordpolicy.io/v1alpha
kind: CPUSuppress
metadata: {name: x}
spec:
  match:
    condition: node.labels[?'ä😀'].hasValue() and node.unschedulable
  mechanism: CPUset
  parameters: {threshold: 85 %}
"""
RIGHT = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: x}
spec:
  match:
    condition: node.labels[?'ä😀'].hasValue() && node.unschedulable
  mechanism: cpuset
  parameters: {threshold: 85%}
"""
SLOPPY = RIGHT.replace("mechanism: cpuset", "mechanism:   CPUset")
GUESS = RIGHT.replace("unschedulable", "unschedulabel")


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return pack_remembering()


def run(compiler: Compiler, *words: str, given: str = "") -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(words, Terminal(out, err, io.BytesIO(given.encode())), compiler)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "p.yaml"
    file.write_text(WRONG)
    file.chmod(0o640)
    return file


def test_fixes_are_written_and_checked(file: Path, compiler: Compiler) -> None:
    code, out, err = run(compiler, "check", "p.yaml", "--fix")
    assert (code, err) == (0, "4 fixes in 1 file\n"), out
    assert file.read_text() == RIGHT
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(file.parent.iterdir()) == [file]


def test_a_dry_run_writes_nothing(file: Path, compiler: Compiler) -> None:
    code, out, err = run(compiler, "check", "p.yaml", "--fix", "--dry-run")
    assert (code, err) == (1, "4 fixes in 1 file, not written\n")
    assert "+  mechanism: cpuset\n" in out and "KP102" in out
    assert file.read_text() == WRONG


def test_guesses_are_asked_for(file: Path, compiler: Compiler) -> None:
    file.write_text(GUESS)
    assert run(compiler, "check", "p.yaml", "--fix")[0] == 1
    assert file.read_text() == GUESS
    assert run(compiler, "check", "p.yaml", "--fix", "--unsafe-fixes")[0] == 0
    assert file.read_text() == RIGHT


@pytest.mark.parametrize("command", [("fmt", "p.yaml"), ("check", "p.yaml", "--fix")])
def test_a_file_that_nobody_may_write_is_left(
    command: tuple[str, ...], file: Path, compiler: Compiler
) -> None:
    file.write_text(SLOPPY)
    file.chmod(0o444)
    code, _, err = run(compiler, *command)
    assert (code, file.read_text()) == (2, SLOPPY)
    assert "`p.yaml` is read-only; permit writing with `chmod u+w` first" in err


def test_a_file_of_two_names_is_not_cut_apart(file: Path, compiler: Compiler) -> None:
    file.write_text(SLOPPY)
    file.with_name("other.txt").hardlink_to(file)
    code, _, err = run(compiler, "fmt", "p.yaml")
    assert (code, file.stat().st_nlink, file.read_text()) == (2, 2, SLOPPY)
    assert "`p.yaml` is one of 2 names of a file" in err


def test_a_link_stays_one(file: Path, compiler: Compiler) -> None:
    link = file.with_name("q.yaml")
    link.symlink_to("p.yaml")
    assert run(compiler, "check", "q.yaml", "--fix")[0] == 0
    assert link.is_symlink() and file.read_text() == RIGHT


def test_standard_input_is_checked_by_its_name(file: Path, compiler: Compiler) -> None:
    code, out, _ = run(compiler, "check", "-", "--stdin-filename", "some/where.yaml", given=WRONG)
    assert code == 1 and "--> some/where.yaml:1:13" in out
    assert run(compiler, "check", "-", given=RIGHT)[0] == 0


def test_standard_input_stands_for_its_file(file: Path, compiler: Compiler) -> None:
    assert run(compiler, "check", ".", "-", "--stdin-filename", "p.yaml", given=RIGHT)[0] == 0
    assert run(compiler, "check", ".", "-", "--stdin-filename", str(file), given=RIGHT)[0] == 0
    code, out, _ = run(compiler, "check", ".", "-", "--stdin-filename", "other.yaml", given=RIGHT)
    assert code == 1 and "p.yaml:1:13" in out


def test_what_is_no_text_is_a_finding(file: Path, compiler: Compiler) -> None:
    out = io.StringIO()
    assert main(["check", "-"], Terminal(out, io.StringIO(), io.BytesIO(b"a: \xff\n")), compiler) == 1
    assert "KP001" in out.getvalue() and "stdin.yaml:1:4" in out.getvalue()


def test_standard_input_cannot_be_mended(file: Path, compiler: Compiler) -> None:
    code, _, err = run(compiler, "check", "-", "--fix", given=WRONG)
    assert code == 2 and "--dry-run" in err
    assert run(compiler, "check", "-", "--fix", "--dry-run", given=WRONG)[0] == 1


def test_fmt_is_a_filter(file: Path, compiler: Compiler) -> None:
    crooked = RIGHT.replace("spec:\n  match:\n    condition", "spec:\n     match:\n         condition", 1)
    crooked = crooked.replace("\n  mechanism", "\n     mechanism").replace(
        "\n  parameters", "\n     parameters"
    )
    assert run(compiler, "fmt", "-", given=crooked) == (0, RIGHT, "")
    assert run(compiler, "fmt", "-", given=RIGHT) == (0, RIGHT, "")
    assert run(compiler, "fmt", "-", "--check", given=crooked)[0] == 1
    code, out, err = run(compiler, "fmt", "-", given="a: [\n")
    assert (code, out) == (1, "") and "KP002" in err
