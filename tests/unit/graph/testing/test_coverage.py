"""Coverage by branches, as data: policies, cases, and what these do not take."""

from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.graph import Compiler, Layer
from koordpolicy.graph.testing import Coverage, run_tests
from tests.unit.graph.policies_text import BUNDLE, document

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("coverage.yaml"))
LIBRARY = document(
    "Library",
    "l",
    """
  functions:
    - {name: atLeast, parameters: [{name: a, type: cpu}], expression: "a > cpu('1') ? a : cpu('1')"}
    - {name: always, expression: "true || false"}
""",
)


def _coverage(*documents: str, cases: str) -> Coverage:
    test = document("PolicyTest", "t", f"  cases:\n{indent(cases, '    ')}")
    files = {f"{at}.yaml": text for at, text in enumerate((*documents, test))}
    compilation = Compiler().compile(Layer("test", {"koordpolicy.yaml": BUNDLE, **files}), checked=True)
    assert compilation.graph is not None, [found.message for found in compilation.found]
    run = run_tests(compilation.graph, compilation.units, coverage=True)
    assert run.passed, [found.message for found in run.found]
    assert run.coverage is not None
    return run.coverage


def _missed(coverage: Coverage) -> list[str]:
    return [
        f"{one.span.start.line}:{one.span.start.column} {one.missed}: {one.text}" for one in coverage.missed
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_branches_that_no_case_takes(case: dict[str, Any]) -> None:
    policy = document("CPUSuppress", "default", indent(case["policy"], "  "))
    coverage = _coverage(policy, cases=case["cases"])
    assert _missed(coverage) == case["missed"]
    assert f"{coverage.branches.reached}/{coverage.branches.all}" == case["covered"]


def test_a_function_of_a_library_is_counted_once_wherever_it_is_called() -> None:
    policy = document(
        "CPUSuppress",
        "default",
        "  target: {cel: atLeast(node.capacity.cpu)}\n  minimum: {cel: atLeast(node.usage.total.cpu)}\n"
        "  enabled: {cel: always() && node.unschedulable}\n",
    )
    cases = """
- {name: many, given: {node: {capacity: {cpu: 8}}}, expect: {CPUSuppress.target: 8, CPUSuppress.enabled: false}}
- {name: few, given: {node: {usage: {total: {cpu: 0}}}}, expect: {CPUSuppress.minimum: 1}}
"""
    coverage = _coverage(LIBRARY, policy, cases=cases)
    kinds = {kind: (share.reached, share.all) for kind, share in coverage.kinds.items()}
    assert kinds == {"CPUSuppress": (5, 8), "Library": (4, 8)}
    arms = {branch.text: count for branch, count in coverage.cases.items() if branch.kind == "arm"}
    assert arms == {"a": 1, "cpu('1')": 1}
