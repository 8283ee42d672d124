"""`koordpolicy prove`, and what `check` says of Invariants, as a user runs them."""

import io
import json
from pathlib import Path

import pytest

from koordpolicy.cli.command import CANNOT_RUN, FINDINGS, GAVE_UP, OK
from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

BUNDLE = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: b}
spec: {extends: [koordinator]}
---
apiVersion: koordpolicy.io/v1alpha1
kind: Invariant
metadata: {name: one}
spec:
  decisions: {target: CPUSuppress.target}
  require: $
"""


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(arguments, Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "bundle"


def write(bundle: Path, require: str) -> str:
    bundle.mkdir(exist_ok=True)
    (bundle / "koordpolicy.yaml").write_text(BUNDLE.replace("$", require))
    return str(bundle)


@pytest.mark.parametrize(
    ("require", "code", "answer"),
    [
        ("decisions.target <= node.capacity.cpu", OK, "proved"),
        ("decisions.target >= 0", FINDINGS, "violated"),
        (
            "string(number(decisions.target)).upperAscii().lowerAscii() == string(number(decisions.target))",
            GAVE_UP,
            "gave up",
        ),
    ],
)
def test_the_answer_and_its_exit_code(bundle: Path, require: str, code: int, answer: str) -> None:
    path = write(bundle, require)
    budget = ("--inputs", "1500", "--work", "200000")
    assert run("prove", "one", "-p", path, *budget)[0] == code
    [told] = json.loads(run("prove", "one", "-p", path, *budget, "-o", "json")[1])
    assert told["answer"] == answer
    assert bool(told["facts"]) == (answer == "violated")
    assert bool(told["why"]) == (answer == "gave up")
    shown = run("prove", "one", "-p", path, *budget)[1]
    assert shown.startswith(answer)
    assert all(len(line) <= 80 for line in shown.splitlines() if path not in line)


def test_check_keeps_what_it_proved(bundle: Path) -> None:
    path = write(bundle, "decisions.target < node.capacity.cpu + millicores(7)")
    assert run("check", path)[0] == OK
    [kept] = (bundle.parent / "cache" / "koordpolicy" / "proofs").glob("*.json")
    proofs = json.loads(kept.read_text())
    assert "one" in proofs.values()
    kept.write_text("no JSON")
    assert run("check", path)[0] == OK
    assert json.loads(kept.read_text()) == proofs


def test_check_says_what_does_not_hold(bundle: Path) -> None:
    path = write(bundle, "decisions.target >= 0")
    code, out, _ = run("check", path)
    assert code == FINDINGS
    assert "KP801" in out
    assert "node.capacity.cpu = " in out
    assert run("check", path, "--no-proofs")[0] == OK


def test_two_revisions(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require = "decisions.target >= before.target"
    old = write(tmp_path / "old", require)
    write(bundle, require)
    (bundle / "more.yaml").write_text(
        "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata: {name: m}\n"
        "spec: {parameters: {threshold: 60%}}\n"
    )
    monkeypatch.chdir(bundle)
    code, out, _ = run("prove", "one", "--since", old)
    assert code == FINDINGS
    assert "before.target is" in out
    assert "not asked without --since: one" in run("prove", "one")[1]


def test_a_name_that_nothing_has(bundle: Path) -> None:
    code, _, err = run("prove", "on", "-p", write(bundle, "decisions.target >= 0"))
    assert code == CANNOT_RUN
    assert "did you mean `one`?" in err


def test_what_is_proved_of_nothing_is_said(bundle: Path) -> None:
    folder = write(bundle, "decisions.target <= node.capacity.cpu")
    (bundle / "target.yaml").write_text(
        "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata: {name: default}\n"
        "spec:\n  parameters: {n: {type: int, value: 5}}\n"
        "  target: {cel: node.capacity.cpu / (parameters.n - parameters.n)}\n"
    )
    code, told, _ = run("prove", "one", "-p", folder)
    assert code == OK
    assert "of nothing: decisions.target has no answer on any input tried" in told
    assert json.loads(run("prove", "one", "-p", folder, "-o", "json")[1])[0]["unanswered"] == ["target"]
    (bundle / "target.yaml").unlink()
    assert json.loads(run("prove", "one", "-p", folder, "-o", "json")[1])[0]["unanswered"] == []
