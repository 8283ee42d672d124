"""How `koordpolicy check` and `koordpolicy test` end."""

import io
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

TEST = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyTest
metadata: {name: bands}
spec:
  cases:
    - name: one
      expect: {%s}
"""
BUNDLE = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: fleet}
spec: {extends: [koordinator]}
---
"""
RETRY = "SchedulingProfile/koord-scheduler.queue.retryAfter"


@pytest.mark.parametrize(
    ("expected", "test", "check"),
    [
        (f"{RETRY}: 5m", 0, 0),
        (f"{RETRY}: 6m", 3, 1),  # to `check` a test that fails is a finding as any other
        ("SchedulingProfile/koord-scheduler.queue.nothing: 6m", 3, 1),
    ],
)
def test_tests_that_fail_are_told_apart(tmp_path: Path, expected: str, test: int, check: int) -> None:
    (tmp_path / "bundle.yaml").write_text(BUNDLE + TEST % expected, encoding="utf-8")
    terminal = Terminal(io.StringIO(), io.StringIO())
    assert main(("test", str(tmp_path)), terminal) == test
    assert main(("check", str(tmp_path)), terminal) == check


RULE = """apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: limited}
spec:
  match: {condition: pod.band == 'batch'}
  require: {cel: pod.limit.batch.cpu <= cpu("8")}
  enforcement: warn
---
"""


def test_a_rule_that_does_not_apply_is_named_where_the_default_holds(tmp_path: Path) -> None:
    expected = "AdmissionRule/limited.enforcement: warn"
    (tmp_path / "bundle.yaml").write_text(BUNDLE + RULE + TEST % expected, encoding="utf-8")
    out = io.StringIO()
    assert main(("test", str(tmp_path)), Terminal(out, out)) == 3
    assert "not by      AdmissionRule/limited, which does not apply here\n" in out.getvalue()


def test_where_there_are_no_tests_nothing_is_tested(tmp_path: Path) -> None:
    (tmp_path / "bundle.yaml").write_text(BUNDLE, encoding="utf-8")
    assert main(("test", str(tmp_path)), Terminal(io.StringIO(), io.StringIO())) == 2
