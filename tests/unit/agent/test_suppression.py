"""CPU suppression: from facts to a decision, from a decision to what is written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.agent.strategies.suppression import Suppression, SuppressionAction
from koordpolicy.agent.strategies.suppression_plan import SuppressionPlan, plan
from koordpolicy.algorithms.cpuset import CpusetWrite, Reach
from koordpolicy.algorithms.suppress import CpusetLimits
from koordpolicy.model.metric import NodeMetric
from tests.unit.agent.nodes import ALL, decision, group, sight
from tests.unit.graph.policies_text import graph as graph_without_pack
from tests.vectors.policies import document, graph, graph_with_line


def policies(**spec: Any) -> Any:
    """The built-in pack with this said about suppression."""
    return graph(document("CPUSuppress", "ours", spec))


def test_the_target_is_what_the_others_leave() -> None:
    found = decision(graph(), sight())
    assert (found.outcome, found.mechanism, found.target) == (SuppressionAction.SUPPRESS, "cpuset", 3_000)
    assert found.figures == {"protectedPods": 8_000, "protectedHostApplications": 0, "system": 2_000}
    assert found.cpuset_limits == CpusetLimits(minimum_cpus=2, growth=0.1)
    assert (found.quota_limits.minimum, found.quota_limits.negligible) == (2_000, 0.01)


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ({"minimum": {"cel": "node.capacity.cpu * percent(25)"}}, 5_000),
        ({"minimum": 1}, 3_000),
        ({"parameters": {"threshold": "80%"}}, 6_000),
        ({"match": {"nodes": {"matchLabels": {"pool": "other"}}}, "parameters": {"threshold": "80%"}}, 3_000),
    ],
)
def test_what_a_user_says_changes_the_target(spec: dict[str, Any], target: int) -> None:
    assert decision(policies(**spec), sight()).target == target


@pytest.mark.parametrize(
    ("spec", "age", "outcome"),
    [
        ({}, 2, SuppressionAction.SUPPRESS),
        ({}, 3, SuppressionAction.KEEP),
        ({"onMissing": {"after": "10s"}}, 3, SuppressionAction.SUPPRESS),
        ({"onMissing": {"action": "Recover"}}, 3, SuppressionAction.RECOVER),
        ({"enabled": False}, 0, SuppressionAction.RECOVER),
        ({"target": {"cel": "node.capacity.cpu - node.usage.p95.cpu"}}, 0, SuppressionAction.KEEP),
        (
            {"target": {"cel": "node.capacity.cpu - node.usage.p95.cpu"}, "onMissing": {"action": "Recover"}},
            0,
            SuppressionAction.RECOVER,
        ),
    ],
)
def test_without_a_measurement_policy_says_what_holds(
    spec: dict[str, Any], age: int, outcome: SuppressionAction
) -> None:
    found = decision(policies(**spec), sight(age=age))
    assert found.outcome is outcome
    assert bool(found.reason) == (outcome is not SuppressionAction.SUPPRESS)


def test_a_node_that_was_never_measured() -> None:
    seen = sight()
    unmeasured = type(seen)(seen.node, seen.pods, NodeMetric("n"))
    assert decision(graph(), unmeasured).outcome is SuppressionAction.KEEP
    assert decision(graph(), type(seen)(seen.node, seen.pods)).outcome is SuppressionAction.KEEP


def test_without_a_policy_nothing_is_held_back() -> None:
    assert decision(graph_without_pack(), sight()).outcome is SuppressionAction.RECOVER


def test_cpus_are_taken_at_once_and_given_back_in_steps() -> None:
    suppressed = plan(decision(graph(), sight()), group())
    assert suppressed.picked is not None
    assert suppressed.picked.count == 3
    picked = frozenset(suppressed.picked.picked)
    assert suppressed.cpuset == (CpusetWrite(Reach.TOP_DOWN, ALL), CpusetWrite(Reach.BOTTOM_UP, picked))
    relieved = plan(decision(graph(), sight(used=2_000, web=0)), group(current=picked))
    assert relieved.picked is not None
    assert relieved.picked.count == 3 + 2  # a tenth of twenty


def test_changing_the_percentage_changes_how_many_cpus_are_left() -> None:
    counts = [
        plan(decision(policies, sight()), group()).picked
        for policies in (graph(), graph_with_line("agent/cpu-suppress.yaml", "value: 65%", "value: 80%"))
    ]
    assert [found.count for found in counts if found is not None] == [3, 6]


def test_the_mechanism_not_in_use_gives_back_what_it_took() -> None:
    by_quota = plan(decision(policies(mechanism="cfsQuota"), sight()), group(current={0, 1}))
    assert by_quota == SuppressionPlan((CpusetWrite(Reach.TOP_DOWN, ALL),), quota=300_000)
    by_cpus = plan(decision(graph(), sight()), group(quota=300_000))
    assert (by_cpus.quota, by_cpus.picked is not None) == (-1, True)


def test_what_others_have_alone_is_never_given() -> None:
    recovered = plan(Suppression(SuppressionAction.RECOVER), group(current={5}, excluded={0, 1}, quota=5_000))
    assert recovered == SuppressionPlan((CpusetWrite(Reach.TOP_DOWN, ALL - {0, 1}),), quota=-1)


@pytest.mark.parametrize("unreadable", [{"current": None}, {"quota": None}, {"current": None, "quota": None}])
def test_what_cannot_be_read_is_left_alone(unreadable: dict[str, Any]) -> None:
    for spec in ({}, {"mechanism": "cfsQuota"}, {"enabled": False}):
        found = plan(decision(policies(**spec), sight()), group(**unreadable))
        assert "current" not in unreadable or found.cpuset == ()
        assert "quota" not in unreadable or found.quota is None


TARGETS = st.integers(-5_000, 25_000)
CPUS = st.frozensets(st.integers(0, 19))


@given(
    TARGETS, st.sampled_from(("cpuset", "cfsQuota")), CPUS, CPUS, st.integers(-1, 3_000_000), st.booleans()
)
def test_a_plan_reaches_a_state_that_it_does_not_leave(
    target: int, mechanism: str, current: frozenset[int], excluded: frozenset[int], quota: int, static: bool
) -> None:
    """However the group begins, some rounds of the same decision come to rest, within what is allowed."""
    held = Suppression(
        SuppressionAction.SUPPRESS,
        mechanism,
        target,
        CpusetLimits(2, 0.1),
        decision(graph(), sight()).quota_limits,
    )
    states = []
    for _ in range(40):
        found = plan(
            held,
            group(current=current, quota=quota, excluded=excluded, kubelet_owns_parents=static),
        )
        for write in found.cpuset:
            assert write.cpus & excluded <= current
            if not static or write.reach is Reach.CONTAINERS_ONLY:
                current = write.cpus
        quota = quota if found.quota is None else found.quota
        states.append((current, quota))
    assert states[-1] == states[-2]


def test_keeping_writes_nothing() -> None:
    assert plan(Suppression(SuppressionAction.KEEP), group(current={1}, quota=7)) == SuppressionPlan()
