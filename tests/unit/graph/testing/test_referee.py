"""The second opinion: what is compared with cel-python, what is skipped, and that a disagreement shows."""

from typing import Any

import pytest

from koordpolicy.graph.testing import referee
from koordpolicy.graph.testing.celpython import FAILED, CelPython, same
from koordpolicy.graph.testing.nested import nested
from tests.unit.graph.policies_text import compiled, document

POLICY = document(
    "CPUSuppress",
    "plain",
    """
  parameters:
    floor: {type: cpu, value: 2}
  variables:
    - {name: reserve, expression: node.capacity.cpu - parameters.floor}
    - {name: busy, expression: "node.pods.exists(p, p.band == 'prod')"}
    - {name: share, expression: node.capacity.cpu * percent(65)}
  target: {cel: "variables.busy ? variables.reserve : variables.share"}
""",
)
TEST = document(
    "PolicyTest",
    "tests",
    """
  cases:
    - name: busy
      given: {node: {capacity: {cpu: 8}, pods: [{name: web, band: prod}]}}
      expect: {CPUSuppress.target: 6}
    - name: idle
      given: {node: {capacity: {cpu: 8}}}
      expect: {CPUSuppress.target: 5200m}
""",
)


def opinion() -> referee.Opinion:
    found = compiled(POLICY, TEST)
    assert found.graph is not None, list(found.found)
    return referee.second_opinion(found.graph, found.units)


def test_expressions_are_compared_on_the_inputs_of_tests() -> None:
    found = opinion()
    assert (found.expressions, found.evaluations, found.disagreements) == (3, 6, [])
    assert found.skipped == {"arithmetic with units": 1}


def test_a_disagreement_names_expression_and_case(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(CelPython):
        def value(self, context: Any) -> Any:
            return FAILED

    monkeypatch.setattr(referee, "CelPython", Stubborn)
    found = opinion()
    assert [(one.text, one.case, one.ours, one.theirs) for one in found.disagreements][:2] == [
        ("node.capacity.cpu - parameters.floor", "busy", "6000", "an error"),
        ("node.pods.exists(p, p.band == 'prod')", "busy", "True", "an error"),
    ]


def test_records_become_maps_in_maps() -> None:
    tree = nested("node", {"usage.prod.cpu": 3, "pods": [{"request.cpu": 5}]})
    assert tree["usage"]["prod"] == {"cpu": 3}
    assert tree["usage"]["total"] == {}
    assert tree["pods"][0]["request"]["cpu"] == 5


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (1, 1, True), (1, 1.0, False), (1, True, False), (FAILED, FAILED, True), (1, FAILED, False),
        (float("nan"), float("nan"), True), ([1, "a"], [1, "a"], True), ({"a": 1}, {"a": 2}, False),
    ],
)  # fmt: skip
def test_values_are_the_same_when_their_types_are(one: Any, other: Any, agree: bool) -> None:
    assert same(one, other) is agree
