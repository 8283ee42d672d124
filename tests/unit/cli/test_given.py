"""`--given`: facts from a file, a pipe or standard input."""

import io
import os
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

FACTS = b"node: {capacity: {cpu: 16}, usage: {total: {cpu: 2}}, pods: []}\n"
ASKED = ("explain", "CPUSuppress.target")


def run(*words: str, given: bytes = b"") -> tuple[int, str, str]:
    terminal = Terminal(out := io.StringIO(), err := io.StringIO(), io.BytesIO(given))
    return main((*ASKED, *words), terminal), out.getvalue(), err.getvalue()


@pytest.fixture
def wanted(tmp_path: Path) -> str:
    (tmp_path / "facts.yaml").write_bytes(FACTS)
    code, out, _ = run("-g", str(tmp_path / "facts.yaml"))
    assert code == 0
    return out


def test_facts_come_on_standard_input(wanted: str) -> None:
    assert run("-g", "-", given=FACTS) == (0, wanted, "")


def test_facts_come_through_a_pipe(wanted: str) -> None:
    """As `-g <(command)` gives them."""
    read, write = os.pipe()
    os.write(write, FACTS)
    os.close(write)
    try:
        assert run("-g", f"/dev/fd/{read}") == (0, wanted, "")
    finally:
        os.close(read)


@pytest.mark.parametrize(
    ("words", "given", "problem"),
    [
        (("-g", "nowhere.yaml"), b"", "`nowhere.yaml` is no file; `--given` names one with facts, or `-`"),
        (("-g", "/"), b"", "`/` is no file"),
        (("-g", "-"), b"", "`-` has 0 documents; one with facts is needed"),
        (("-g", "-"), b"node: {capacity: {cpus: 1}}\n", "stdin.yaml:1:"),
        (("-g", "-"), b"\xff", "stdin.yaml"),
    ],
)
def test_what_are_no_facts_is_told(words: tuple[str, ...], given: bytes, problem: str) -> None:
    code, out, said = run(*words, given=given)
    assert (code, out) == (2, "")
    assert problem in said


def test_who_stands_in_a_bundle_hears_that_another_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    bundle = "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\nmetadata: {name: own}\n"
    (tmp_path / "koordpolicy.yaml").write_text(bundle + "spec: {extends: [koordinator]}\n", "utf-8")
    code, out, err = run("-g", "-", given=FACTS)
    assert (code, out) == (0, wanted)
    assert err == "the built-in pack alone is asked; `-p .` asks the bundle in this folder\n"
    assert run("-g", "-", "-p", ".", given=FACTS)[2] == ""
