"""What decisions may cost, and how they are computed."""

import pytest

from koordpolicy.graph import Layer, compile_policies
from koordpolicy.graph.plan import Way, plans
from tests.unit.graph.policies_text import document, graph

WALK = '  resource: batch\n  parameters: {{names: {{type: list(string), value: {value}}}}}\n  cpu: {{cel: "{cel}"}}\n'
SQUARE = "node.pods.map(a, parameters.names.filter(n, n == a.name).size()).sum() > 0 ? node.capacity.cpu : cpu('1')"


def cost(value: str) -> int:
    found = plans(graph(document("Overcommit", "batch", WALK.format(value=value, cel=SQUARE))))
    return next(plan.cost for plan in found if plan.decision == "Overcommit/batch.cpu")


def test_a_parameter_counts_as_long_as_it_is() -> None:
    assert (
        cost("[a]") < cost("[a, b, c, d, e, f]") < cost("[" + ", ".join(f"n{at}" for at in range(50)) + "]")
    )


@pytest.mark.parametrize(("budget", "codes"), [(1_000_000, []), (2_000, ["KP601"])])
def test_a_bundle_sets_its_budget(budget: int, codes: list[str]) -> None:
    files = {
        "koordpolicy.yaml": document(
            "PolicyBundle", "b", f"  extends: []\n  budgets: {{costPerDecision: {budget}}}\n"
        ),
        "a.yaml": document("Overcommit", "batch", WALK.format(value="[a, b]", cel=SQUARE)),
    }
    assert [found.code for found in compile_policies(Layer("own", files)).found] == codes


def test_a_parameter_that_is_short_does_not_count_as_a_long_list() -> None:
    """The quick estimate takes 64 elements for the list; the exact one, which decides, takes two."""
    files = {
        "koordpolicy.yaml": document(
            "PolicyBundle", "b", "  extends: []\n  budgets: {costPerDecision: 30000}\n"
        ),
        "a.yaml": document("Overcommit", "batch", WALK.format(value="[a, b]", cel=SQUARE)),
    }
    assert not len(compile_policies(Layer("own", files)).found)
    assert cost("[a, b]") < 30_000 < cost("[" + ", ".join(f"n{at}" for at in range(64)) + "]")


def test_plans_tell_how_a_decision_is_computed() -> None:
    policies = graph(
        document(
            "Overcommit",
            "batch",
            "  resource: batch\n  cpu: {cel: node.capacity.cpu}\n  onMissing: {after: 15m}\n",
        ),
        document("CPUSuppress", "s", "  target: {cel: node.capacity.cpu}\n"),
        document("AdmissionRule", "r", "  require: {cel: \"pod.containers.all(c, c.name != '')\"}\n"),
    )
    found = {plan.decision: plan for plan in plans(policies)}
    assert found["Overcommit/batch.cpu"].way is Way.COLUMNS
    assert found["Overcommit/batch.onMissing.after"].way is Way.CONSTANT
    assert found["CPUSuppress.target"].way is Way.ROW
    assert found["AdmissionRule/r.require"].loop == "pod.containers"
    assert [plan.cost for plan in plans(policies)] == sorted(
        (plan.cost for plan in found.values()), reverse=True
    )
