"""What a decision may cost: a bundle may lower it, the operators alone may raise it."""

import pytest

from koordpolicy.graph import Compilation, Layer
from koordpolicy.graph.compiler import Compiler
from koordpolicy.language.cel.errors import CostExceeded
from koordpolicy.language.cel.meter import DEFAULT_BUDGET

BUNDLE = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: test}
spec: {extends: []%s}
"""
SUPPRESS = """apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: default}
spec:
  target: {cel: "node.capacity.cpu - node.pods.map(p, node.pods.map(q, q.request.cpu + p.request.cpu).sum()).sum()"}
"""


def _compiled(budget: int | None, max_cost: int = DEFAULT_BUDGET) -> Compilation:
    asked = "" if budget is None else f", budgets: {{costPerDecision: {budget}}}"
    files = {"koordpolicy.yaml": BUNDLE % asked, "suppress.yaml": SUPPRESS}
    return Compiler(max_cost=max_cost).compile(Layer("test", files))


@pytest.mark.parametrize(
    ("budget", "max_cost", "codes", "holds"),
    [
        (None, DEFAULT_BUDGET, [], DEFAULT_BUDGET),
        (960_000, DEFAULT_BUDGET, [], 960_000),
        (2_000_000, DEFAULT_BUDGET, ["KP602"], DEFAULT_BUDGET),
        (1_000_000_000, 3_000_000, ["KP602"], 3_000_000),
        (2_000_000, 3_000_000, [], 2_000_000),
        (None, 3_000_000, [], 3_000_000),
        (1_000, DEFAULT_BUDGET, ["KP601"], None),
        (None, 1_000, ["KP601"], None),
    ],
)
def test_the_lower_of_both_holds(
    budget: int | None, max_cost: int, codes: list[str], holds: int | None
) -> None:
    compilation = _compiled(budget, max_cost)
    assert [found.code for found in compilation.found] == codes
    assert (compilation.graph and compilation.graph.budget) == holds


def test_a_decision_past_its_budget_is_an_error_that_names_the_rule() -> None:
    graph = _compiled(budget=960_000).graph
    assert graph is not None
    pods = [{"request.cpu": 1} for _ in range(2_000)]
    answer = graph.ask("CPUSuppress.target", node={"capacity.cpu": 1_000, "pods": pods})
    assert isinstance(answer.error, CostExceeded)
    assert "960,000 units" in str(answer.error)
    assert [rule.span.file for rule in answer.provenance.rules] == ["suppress.yaml"]
    few = graph.ask("CPUSuppress.target", node={"capacity.cpu": 1_000, "pods": pods[:10]})
    assert few.value == 800
