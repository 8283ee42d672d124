"""What a condition that fails does: nobody loses a default by it, and no protection is switched off."""

from typing import Any

import pytest

from koordpolicy.language.cel.unheld import SEEN
from koordpolicy.language.kinds import KINDS, slots
from koordpolicy.language.manual.errors import VALUES
from tests.unit.graph.policies_text import document, graph

BASE = document("CPUSuppress", "base", "  target: {cel: node.capacity.cpu * percent(50)}")
FULL, HALF = 1_000, 500


def suppressed(condition: str, **facts: Any) -> int:
    over = document(
        "CPUSuppress",
        "over",
        f"  precedence: 1\n  match: {{condition: {condition!r}}}\n  target: {{cel: node.capacity.cpu}}",
    )
    answer = graph(BASE, over).ask("CPUSuppress.target", node={"capacity.cpu": FULL, "labels": {}, **facts})
    assert answer.error is None
    documents = [rule.document for rule in answer.provenance.rules]
    assert documents == ["CPUSuppress/over" if answer.value == FULL else "CPUSuppress/base"]
    return int(str(answer.value))


@pytest.mark.parametrize(
    ("condition", "facts", "expected"),
    [
        ("node.labels['team'] == 'a'", {}, HALF),
        ("node.labels['team'] == 'a'", {"labels": {"team": "a"}}, FULL),
        ("node.labels['team'] == 'a'", {"labels": {"team": "b"}}, HALF),
        ("node.labels['exempt'] != 'true'", {}, FULL),
        ("node.labels.team != 'a' && !node.unschedulable", {"unschedulable": True}, HALF),
        ("node.usage.total.cpu < cpu('4')", {}, HALF),
        ("int(node.labels['tier']) > 2", {}, HALF),
        ("int(node.labels['tier']) > 2", {"labels": {"tier": "high"}}, HALF),
        ("int(node.labels['tier']) > 2", {"labels": {"tier": "3"}}, FULL),
        ("node.pods[0].name == 'a'", {"pods": []}, HALF),
    ],
)
def test_a_rule_whose_condition_fails_does_not_apply(
    condition: str, facts: dict[str, Any], expected: int
) -> None:
    assert suppressed(condition, **facts) == expected


def required(condition: str, labels: dict[str, str]) -> Any:
    rule = document(
        "AdmissionRule",
        "own",
        f"  match: {{condition: {condition!r}}}\n  require: {{cel: \"pod.labels[?'owner'].hasValue()\"}}",
    )
    answer = graph(rule).ask("AdmissionRule/own.require", pod={"labels": labels})
    return answer.value if answer.error is None else answer.error.kind


@pytest.mark.parametrize(
    ("condition", "labels", "expected"),
    [
        ("pod.labels['team'] == 'a'", {}, True),
        ("pod.labels['team'] == 'a'", {"team": "a"}, False),
        ("pod.labels['exempt'] != 'true'", {}, False),
        ("pod.labels['exempt'] != 'true'", {"exempt": "true"}, True),
        ("int(pod.labels['tier']) > 2", {}, "invalid_argument"),
        ("int(pod.labels['tier']) > 2", {"owner": "me"}, True),
        ("int(pod.labels['tier']) > 2", {"tier": "1"}, True),
    ],
)
def test_a_requirement_is_neither_lost_nor_refuses_what_fulfils_it(
    condition: str, labels: dict[str, str], expected: object
) -> None:
    assert required(condition, labels) == expected


def test_failures_are_counted_by_the_place_of_the_condition() -> None:
    before = SEEN.seen()
    suppressed("node.labels['team'] == 'a'")
    [(place, found)] = SEEN.since(before).items()
    assert place == "1.yaml:6:22"
    assert (found.count, found.error) == (1, "no_such_key: no such key: 'team'")


def test_every_kind_that_decides_says_what_its_errors_do() -> None:
    deciding = {name for name, kind in KINDS.items() if any(slots(kind.spec))}
    assert set(VALUES) == deciding
