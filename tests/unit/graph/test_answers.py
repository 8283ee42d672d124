"""What a graph answers: layers, ranks, parameters, defaults, provenance."""

from typing import Any

import pytest

from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.language.cel.errors import MissingFact
from koordpolicy.language.facts import Component
from tests.unit.graph.policies_text import document, graph

BASE = document(
    "CPUSuppress",
    "base",
    """
  parameters: {threshold: 65%}
  target: {cel: node.capacity.cpu * parameters.threshold}
""",
)
POOL = document(
    "CPUSuppress",
    "pool",
    """
  match: {nodes: {matchLabels: {pool: colocated}}}
  parameters: {threshold: 80%}
""",
)
BIG = document(
    "CPUSuppress",
    "big",
    """
  precedence: 5
  match: {condition: 'node.capacity.cpu >= cpu("64")'}
  parameters: {threshold: 90%}
""",
)


def node(cpu: int = 10_000, **labels: str) -> dict[str, Any]:
    return {"capacity.cpu": cpu, "labels": labels}


@pytest.mark.parametrize(
    ("facts", "target"),
    [
        (node(), 6_500),
        (node(pool="other"), 6_500),
        (node(pool="colocated"), 8_000),
        (node(64_000), 57_600),
        (node(64_000, pool="colocated"), 57_600),
    ],
)
def test_a_parameter_is_decided_by_the_highest_rank_that_matches(facts: dict[str, Any], target: int) -> None:
    answer = graph(BASE, POOL, BIG).ask("CPUSuppress.target", node=facts)
    assert (answer.value, answer.error) == (target, None)


def test_a_bundle_outranks_the_pack_it_extends_field_by_field() -> None:
    over = document("CPUSuppress", "ours", "  parameters: {threshold: 50%}")
    assert graph(over, pack=BASE).ask("CPUSuppress.target", node=node()).value == 5_000


def test_the_answer_names_its_rules_and_the_facts_they_read() -> None:
    answer = graph(BASE, POOL).ask("CPUSuppress.target", node=node(pool="colocated"))
    assert [(rule.document, rule.decision) for rule in answer.provenance.rules] == [
        ("CPUSuppress/base", "CPUSuppress.target"),
        ("CPUSuppress/pool", "CPUSuppress.parameters.threshold"),
    ]
    assert [rule.span.start.line for rule in answer.provenance.rules] == [6, 6]
    assert {fact.path: fact.value for fact in answer.provenance.facts} == {
        "node.capacity.cpu": 10_000,
        "node.labels": {"pool": "colocated"},
    }


def test_a_missing_fact_is_an_error_that_names_it() -> None:
    answer = graph(BASE).ask("CPUSuppress.target", node={"labels": {}})
    assert answer.value is None
    assert isinstance(answer.error, MissingFact)
    assert answer.error.path == "node.capacity.cpu"


def test_a_slot_that_nobody_fills_has_its_default() -> None:
    compiled = graph(BASE)
    assert compiled.ask("CPUSuppress.enabled", node=node()).value is True
    assert compiled.ask("CPUSuppress.minimumCPUs", node=node()).value is None


def test_fields_of_one_subject_are_asked_about_the_same_records() -> None:
    zones = document(
        "Overcommit",
        "batch",
        "  resource: batch\n  cpu: {cel: node.capacity.cpu}\n  zone: {cpu: {cel: zone.allocatable.cpu}}",
    )
    about = graph(zones).about("Overcommit", "batch", {"node": node(4_000)})
    assert about.value("cpu") == 4_000
    assert about.value("zone.cpu", zone={"allocatable.cpu": 700}) == 700
    assert about.value_or("zone.cpu", None) is None
    with pytest.raises(MissingFact):
        about.value("zone.cpu")
    assert (about.says("zone.cpu"), about.says("zone.memory"), about.says("cpus")) == (True, False, False)
    with pytest.raises(UnknownDecision):
        about.value_or("cpus", None)
    assert graph(BASE).about("CPUSuppress", "", {"node": node()}).value("target") == 6_500


def test_an_unknown_decision_suggests_the_nearest() -> None:
    with pytest.raises(UnknownDecision, match=r"did you mean `CPUSuppress\.target`"):
        graph(BASE).decision("CPUSuppress.targt")


def test_an_optional_parameter_is_none_until_somebody_sets_it() -> None:
    base = document(
        "CPUSuppress",
        "base",
        """
  parameters: {floor: {type: percent, optional: true}}
  target: {cel: node.capacity.cpu * parameters.floor.orValue(percent(10))}
""",
    )
    over = document("CPUSuppress", "over", "  parameters: {floor: 30%}")
    assert graph(base).ask("CPUSuppress.target", node=node()).value == 1_000
    assert graph(over, pack=base).ask("CPUSuppress.target", node=node()).value == 3_000


def test_variables_may_stand_in_any_order_and_use_library_functions() -> None:
    library = document(
        "Library",
        "sums",
        """
  constants: {spare: 10%}
  functions:
    - name: half
      parameters: [{name: amount, type: cpu}]
      expression: amount / 2
    - name: quarter
      parameters: [{name: amount, type: cpu}]
      expression: half(half(amount))
""",
    )
    policy = document(
        "CPUSuppress",
        "base",
        """
  variables:
    - {name: total, expression: variables.part + node.capacity.cpu * constants.spare}
    - {name: part, expression: quarter(node.capacity.cpu)}
  target: {cel: variables.total}
""",
    )
    assert graph(library, policy).ask("CPUSuppress.target", node=node()).value == 3_500


def test_the_graph_does_not_depend_on_the_order_or_layout_of_files() -> None:
    spaced = "# a comment\n" + POOL.replace("65%", "65%  ")
    assert graph(BASE, POOL, BIG).digest == graph(BIG, spaced, BASE).digest
    assert graph(BASE, POOL).digest != graph(BASE, POOL.replace("80%", "81%")).digest


def test_a_component_gets_only_what_it_can_ask() -> None:
    whole = graph(BASE)
    assert "CPUSuppress.target" in whole.for_component(Component.AGENT)
    assert "CPUSuppress.target" not in whole.for_component(Component.SCHEDULER)
