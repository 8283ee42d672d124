"""Coverage as an LCOV tracefile."""

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
  minimum: {cel: "node.capacity.cpu > cpu('8') ? cpu('2') : cpu('1')"}
  target: {cel: node.capacity.cpu}
---
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyTest
metadata: {name: t}
spec:
  cases:
    - {name: one, given: {node: {capacity: {cpu: 16}}}, expect: {CPUSuppress.minimum: 2}}
    - {name: two, given: {node: {capacity: {cpu: 32}}}, expect: {CPUSuppress.minimum: 2}}
"""


def test_branches_by_line_with_the_cases_that_took_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text(BUNDLE, encoding="utf-8")
    assert main(["test", "-o", "lcov", "own.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "SF:own.yaml",
        "BRDA:11,50,0,2",
        "BRDA:11,61,1,0",
        "BRDA:12,17,2,-",
        "BRF:3",
        "BRH:1",
        "DA:11,2",
        "DA:12,0",
        "LF:2",
        "LH:1",
        "end_of_record",
    ]
