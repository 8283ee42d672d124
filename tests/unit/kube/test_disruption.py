"""Disruption budgets as arithmetic."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube.memory.disruption import BudgetTally, check_budget, desired_healthy
from koordpolicy.kube.memory.disruption import budget_status as status_of
from tests.unit.kube.builders import NOW

DUE = "2025-06-15T15:06:40Z"
"""`NOW` as text."""


@pytest.mark.parametrize(
    ("spec", "expected", "desired"),
    [
        ({"minAvailable": 2}, 5, 2),
        ({"minAvailable": 7}, 5, 7),
        ({"minAvailable": "50%"}, 5, 3),
        ({"minAvailable": "0%"}, 5, 0),
        ({"minAvailable": "100%"}, 5, 5),
        ({"maxUnavailable": 2}, 5, 3),
        ({"maxUnavailable": 7}, 5, 0),
        ({"maxUnavailable": "50%"}, 5, 2),
        ({"maxUnavailable": "1%"}, 5, 4),
        ({"maxUnavailable": "0%"}, 5, 5),
        ({"maxUnavailable": "30%"}, 10, 7),
        ({}, 5, 0),
    ],
    ids=str,
)
def test_how_many_must_stay(spec: dict[str, Any], expected: int, desired: int) -> None:
    assert desired_healthy(spec, expected) == desired


@given(st.integers(0, 100), st.integers(0, 10_000))
def test_shares_round_up_either_way(percent: int, expected: int) -> None:
    share = math.ceil(percent * expected / 100)
    assert desired_healthy({"minAvailable": f"{percent}%"}, expected) == share
    assert desired_healthy({"maxUnavailable": f"{percent}%"}, expected) == expected - share


def pod(name: str, *, ready: bool = True, going: bool = False, owner: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if going:
        metadata["deletionTimestamp"] = DUE
    if owner:
        metadata["ownerReferences"] = [
            {"uid": owner, "kind": "ReplicaSet", "name": owner, "controller": True}
        ]
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


def budget(status: Mapping[str, Any] | None = None, /, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "b", "generation": 3}, "spec": spec, "status": status or {}}


def budget_status(found: Any, pods: list[Any], scale: Any, now: int) -> dict[str, Any]:
    tally = BudgetTally()
    for entry in pods:
        tally.set(entry["metadata"]["name"], entry)
    return status_of(found, tally, scale, now)


def no_scale(_pod: Any) -> int | None:
    return None


def test_the_status_counts_what_serves() -> None:
    pods = [pod("a"), pod("b"), pod("sick", ready=False), pod("going", going=True)]
    status = budget_status(budget(minAvailable=1), pods, no_scale, NOW)
    [condition] = status.pop("conditions")
    assert status == {
        "observedGeneration": 3,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 4,
        "disruptionsAllowed": 1,
    }
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )
    status = budget_status(budget(minAvailable=2), pods, no_scale, NOW)
    assert (status["disruptionsAllowed"], status["conditions"][0]["status"]) == (0, "False")


def test_shares_are_of_what_controllers_want() -> None:
    pods = [
        pod("a", owner="x"),
        pod("b", owner="x"),
        pod("c", owner="y"),
        pod("alone"),
        pod("d", owner="unknown"),
    ]
    scales = {"x": 4, "y": 1}

    def scale(owner: Any) -> int | None:
        return scales.get(owner["name"])

    status = budget_status(budget(maxUnavailable="50%"), pods, scale, NOW)
    assert (status["expectedPods"], status["desiredHealthy"]) == (4 + 1 + 1 + 1, 3)
    assert budget_status(budget(minAvailable="50%"), pods, scale, NOW)["desiredHealthy"] == 4
    assert budget_status(budget(minAvailable=2), pods, scale, NOW)["expectedPods"] == 5


def test_pods_that_were_granted_their_eviction_do_not_count_for_two_minutes() -> None:
    granted = {"disruptedPods": {"a": DUE, "gone": DUE, "going": DUE}}
    pods = [pod("a"), pod("b"), pod("going", going=True)]
    status = budget_status(budget(granted, minAvailable=1), pods, no_scale, NOW + 119)
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (1, 0)
    assert status["disruptedPods"] == {"a": DUE}
    status = budget_status(budget(granted, minAvailable=1), pods, no_scale, NOW + 120)
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (2, 1)
    assert "disruptedPods" not in status


def test_nothing_expected_allows_nothing() -> None:
    assert budget_status(budget(minAvailable=0), [], no_scale, NOW)["disruptionsAllowed"] == 0


pods_lists = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=8).map(
    lambda flags: [pod(f"p{i}", ready=ready, going=going) for i, (ready, going) in enumerate(flags)]
)


@given(
    pods_lists,
    st.sampled_from(["minAvailable", "maxUnavailable"]),
    st.integers(0, 10) | st.integers(0, 100).map(lambda n: f"{n}%"),
)
def test_what_is_allowed_never_takes_health_below_what_must_stay(
    pods: list[Any], field: str, value: int | str
) -> None:
    status = budget_status(budget({}, **{field: value}), pods, no_scale, NOW)
    healthy, desired, allowed = (
        status[key] for key in ("currentHealthy", "desiredHealthy", "disruptionsAllowed")
    )
    assert 0 <= allowed <= max(0, healthy - desired)
    assert healthy - allowed >= min(healthy, desired)
    assert budget_status(budget(status, **{field: value}), pods, no_scale, NOW) == status, "settled"


@pytest.mark.parametrize(
    "spec",
    [
        {"minAvailable": -1},
        {"minAvailable": True},
        {"minAvailable": 1.5},
        {"maxUnavailable": "x%"},
        {"maxUnavailable": "-5%"},
        {"maxUnavailable": "5"},
        {"maxUnavailable": f"{'9' * 5000}%"},
        {"minAvailable": 1, "maxUnavailable": 1},
        {"selector": {"matchLabels": {"a": "not a value"}}},
    ],
    ids=lambda spec: str(spec)[:40],
)
def test_what_makes_no_sense_is_told(spec: dict[str, Any]) -> None:
    assert check_budget({"spec": spec})


def test_what_makes_sense_is_no_fault() -> None:
    for spec in ({"minAvailable": 0}, {"maxUnavailable": "100%", "selector": {}}, {}):
        assert check_budget({"spec": spec}) == []


changes = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.none() | st.tuples(st.booleans(), st.booleans(), st.sampled_from(["", "x", "y"])),
    ),
    max_size=20,
)


@given(changes)
def test_a_tally_kept_pod_by_pod_is_the_one_counted_anew(todo: list[tuple[str, Any]]) -> None:
    kept, pods = BudgetTally(), dict[str, Any]()
    for name, facts in todo:
        found = facts and pod(name, ready=facts[0], going=facts[1], owner=facts[2])
        kept.set(name, found)
        pods.pop(name, None)
        if found:
            pods[name] = found
        anew = BudgetTally()
        for key, entry in pods.items():
            anew.set(key, entry)
        assert (len(kept), kept.healthy) == (len(anew), anew.healthy)
        assert kept.expected(lambda owner: 10) == anew.expected(lambda owner: 10)
        assert all(kept.is_healthy(key) is anew.is_healthy(key) for key in "abc")
