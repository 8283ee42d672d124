"""`koordpolicy test --mutate`: what it prints, and what it exits with."""

import json
from pathlib import Path

import pytest

from koordpolicy.cli.main import main

BUNDLE = """
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: own}
spec: {extends: [koordinator]}
---
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: default}
spec:
  minimum: {cel: "node.labels[?'pool'].orValue('') == 'big' ? cpu('2') : cpu('1')"}
---
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyTest
metadata: {name: t}
spec:
  cases:
    - {name: big, given: {node: {labels: {pool: big}}}, expect: {CPUSuppress.minimum: 2}}
    - {name: other, given: {node: {labels: {pool: x}}}, expect: {CPUSuppress.minimum: 1}}
"""

TEXT = """\
own.yaml
  11:19  node.labels[?'pool'].orValue('') → node.labels[?'pool'].value()
    wanted: a case in which the fact is missing
  11:48  '' → 'big'
    wanted: a case with this very text, and one with another

tests notice 9 of 11 changes (82 %)

2 passed, branches covered 3/4 (75 %)
"""


@pytest.fixture(autouse=True)
def _bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text(BUNDLE, encoding="utf-8")


def test_survivors_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--mutate", "own.yaml"]) == 0
    assert capsys.readouterr().out == TEXT


def test_a_score_that_is_just_high_enough() -> None:
    assert main(["test", "--mutate", "--min-mutation-score", "81.5", "own.yaml"]) == 0


def test_survivors_as_json_and_a_score_that_is_too_low(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--mutate", "--min-mutation-score", "82", "-o", "json", "own.yaml"]) == 1
    mutation = json.loads(capsys.readouterr().out)["mutation"]
    assert (mutation["percent"], mutation["tried"], mutation["counts"]["noticed"]) == (81.82, 11, 9)
    assert [(one["line"], one["operator"], one["after"]) for one in mutation["survivors"]] == [
        (11, "presence", "node.labels[?'pool'].value()"),
        (11, "text", "'big'"),
    ]


def test_policies_whose_tests_fail_have_no_mutants(capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.yaml").write_text(BUNDLE.replace("minimum: 1}", "minimum: 3}"), encoding="utf-8")
    assert main(["test", "--mutate", "own.yaml"]) == 3
    assert "changes" not in capsys.readouterr().out


def test_all_tests_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--mutate", "--filter", "big", "own.yaml"]) == 2
    assert "leave out `--filter`" in capsys.readouterr().err
