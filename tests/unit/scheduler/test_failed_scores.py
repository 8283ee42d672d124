"""A score that cannot be evaluated counts 0 on the node, and the decision says so, whichever way it was asked. A filter refuses the node,
and whoever wants to know hears of it though the pod has found another one.
"""

import pytest

from koordpolicy.scheduler import PodDecision, Scheduler
from koordpolicy.scheduler.decision import FailedScore
from tests.unit.scheduler.world import START, node, pod, policies

SCORE = {
    "scores": [{"name": "Share", "value": {"cel": "int(node.labels[?'share'].orValue('x'))"}, "weight": 1}]
}


def _scheduler(*shares: str | None) -> Scheduler:
    made = Scheduler(policies(SCORE), lambda: START, refusals=False)
    for at, share in enumerate(shares):
        made.set_node(node(f"n{at}", {"labels": {} if share is None else {"share": share}}))
    return made


def _decided(made: Scheduler, name: str) -> PodDecision:
    made.set_pod(pod(name, {"requests": {"cpu": "1"}}))
    decision = made.schedule_one()
    assert decision is not None
    return decision


def _failed(decision: PodDecision) -> list[tuple[str, int]]:
    assert decision.placed
    assert all(one.error for one in decision.failed_scores)
    return [(one.score, one.nodes) for one in decision.failed_scores]


@pytest.mark.parametrize(
    ("shares", "failed"),
    [
        (("1", "2", "3"), []),
        (("1", None, "3"), [("Share", 1)]),
        ((None, "y", ""), [("Share", 3)]),
    ],
)
def test_scores_that_fail_are_in_the_decision(shares: tuple[str | None, ...], failed: list[object]) -> None:
    assert _failed(_decided(_scheduler(*shares), "p")) == failed


def test_what_fails_is_known_when_few_nodes_have_changed_since_an_equal_pod() -> None:
    made = _scheduler("1", *("2" for _ in range(40)))
    assert [_failed(_decided(made, f"p{at}")) for at in range(3)] == [[], [], []]
    made.set_node(node("n3", {"labels": {"share": "many"}}))
    assert [_failed(_decided(made, f"q{at}")) for at in range(3)] == [[("Share", 1)]] * 3
    made.set_node(node("n3", {"labels": {"share": "3"}}))
    assert [_failed(_decided(made, f"r{at}")) for at in range(3)] == [[], [], []]
    for at in range(30):
        made.set_node(node(f"n{at}", {"labels": {}}))
    assert _failed(_decided(made, "s0")) == [("Share", 30)]


def test_nodes_that_are_refused_anyway_do_not_count() -> None:
    made = _scheduler("1", "2")
    made.set_node(node("n2", {"unschedulable": True}))
    assert _failed(_decided(made, "p")) == []


def test_the_error_is_that_of_a_node() -> None:
    (failed,) = _decided(_scheduler("1", None), "p").failed_scores
    assert failed == FailedScore("Share", 1, failed.error)
    assert "x" in failed.error


FILTER = {
    "filters": [
        {
            "name": "Shared",
            "require": {"cel": "int(node.labels[?'share'].orValue('x')) > 0"},
            "reason": "node(s) share nothing",
        }
    ]
}


def _refused(decision: PodDecision) -> list[tuple[str, int, bool]]:
    assert decision.placed
    return [(one.filter, one.nodes, bool(one.error)) for one in decision.refusals]


def test_filters_that_fail_are_in_the_decision_on_a_pod_that_found_a_node() -> None:
    made = Scheduler(policies(FILTER), lambda: START, explained=0, refusals=False, failing=True)
    for at in range(40):
        made.set_node(node(f"n{at:02}", {"labels": {"share": "0" if at < 10 else "1"}}))
    assert [_refused(_decided(made, f"p{at}")) for at in range(3)] == [[], [], []]
    made.set_node(node("n00", {"labels": {"share": "many"}}))
    shown = [("Shared", 10, True)]
    assert [_refused(_decided(made, f"q{at}")) for at in range(3)] == [shown] * 3


def test_nobody_hears_of_them_who_does_not_want_to() -> None:
    made = Scheduler(policies(FILTER), lambda: START, explained=0, refusals=False)
    made.set_node(node("n0", {"labels": {"share": "1"}}))
    made.set_node(node("n1", {"labels": {}}))
    assert _refused(_decided(made, "p")) == []
