"""Slots that read nothing: in the document that introduces a subject they hold whatever it applies to."""

from tests.unit.graph.policies_text import codes, document, graph

RULE = document(
    "AdmissionRule",
    "r",
    """
  match: {pods: {matchLabels: {app: web}}}
  operations: [CREATE]
  order: 7
  require: {cel: pod.priority > 0}
""",
)


def test_a_rule_may_say_both_which_pods_and_which_requests_it_is_about() -> None:
    rules = graph(RULE)
    assert rules.value("AdmissionRule/r.operations") == ["CREATE"]
    assert rules.value("AdmissionRule/r.order") == 7
    pod = {"labels": {"app": "web"}, "priority": 0}
    assert rules.value("AdmissionRule/r.require", pod=pod) is False
    assert rules.value("AdmissionRule/r.require", pod={**pod, "labels": {"app": "db"}}) is None


def test_a_document_that_changes_it_for_some_pods_only_is_refused() -> None:
    over = document("AdmissionRule", "r", "  match: {pods: {matchLabels: {a: b}}}\n  operations: [UPDATE]\n")
    assert codes(over, pack=RULE) == ["KP206"]
