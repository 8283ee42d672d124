"""CEL's conformance cases as tests; `python -m tests.conformance` runs them by hand."""

import json
from pathlib import Path

import pytest

from tests.conformance.run import Case, failure


@pytest.fixture(scope="module")
def cases(vectors: Path) -> list[Case]:
    file = vectors / "cel" / "conformance.json"
    return [Case(data) for data in json.loads(file.read_text(encoding="utf-8"))]


def test_the_conformance_cases_pass(cases: list[Case]) -> None:
    reasons = {case.name: reason for case in cases if (reason := failure(case)) is not None}
    assert reasons == {}
    assert len(cases) >= 1_205


def test_the_runner_can_fail() -> None:
    case = {"file": "f", "section": "s", "name": "n", "expr": "1 + 1"}
    assert failure(Case({**case, "value": {"int": "2"}})) is None
    assert failure(Case({**case, "value": {"int": "3"}})) == "gives 2 instead of 3"
    assert failure(Case({**case, "value": {"uint": "2"}})) == "gives 2 instead of 2u"
    assert failure(Case({**case, "error": ["overflow"]})) == "gives 2, where an error is expected"
    assert failure(Case({**case, "expr": "1 / 0", "value": {"int": "3"}})) is not None
    assert failure(Case({**case, "expr": "1 / 0", "error": ["division"]})) is None
    assert failure(Case({**case, "checkOnly": True, "type": {"primitive": "INT64"}})) is None
    assert (
        failure(Case({**case, "checkOnly": True, "type": {"primitive": "BOOL"}}))
        == "is of type int instead of bool"
    )
