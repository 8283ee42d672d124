"""Evictions: when a round may be, whom it lets go, what counts from before."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.agent.facts import agent_record
from koordpolicy.agent.plan import Eviction
from koordpolicy.agent.strategies.evictable import Evictable
from koordpolicy.agent.strategies.evictions import EvictionMemory, EvictionOutcome, evict_by_needs
from koordpolicy.agent.strategies.memory_eviction import KIND, memory_needs
from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.algorithms.eviction_round import EvictionTask, Target, eviction_round
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import QOS_CLASS
from koordpolicy.model.time import NANOSECONDS
from tests.unit.agent.nodes import NOW
from tests.vectors.policies import document, graph

LONG_AGO = EvictionMemory(NOW - 3600 * NANOSECONDS)
PODS = {"a": 10, "b": 30, "c": 20}
"""What three best-effort pods use of 100 bytes."""


def outcome(
    *, age: float = 0, memory: EvictionMemory = LONG_AGO, refuses: str = "", **conduct: Any
) -> EvictionOutcome:
    """A round on a node of which 95 % are used: 27 bytes have to go."""
    spec: Mapping[str, Any] = {
        "enabled": True,
        "threshold": "70%",
        "bestEffort": {"enabled": True},
        "conduct": conduct,
    }
    compiled = graph(document("MemoryEviction", "ours", spec))
    pods = [Pod(name, uid=name, labels={QOS_CLASS: "BE"}, phase="Running") for name in PODS]
    metric = NodeMetric(
        "n",
        updated_at=NOW - int(age * NANOSECONDS),
        node_usage={"memory": 95},
        pods=tuple(PodMetric("default", name, {"memory": used}) for name, used in PODS.items()),
    )
    sight = NodeSight(Node("n", capacity={"memory": 100}), pods, metric)
    record = agent_record(compiled, CPUSuppression(compiled), sight, NOW)
    return evict_by_needs(
        compiled,
        KIND,
        memory_needs(compiled, record, NOW),
        record,
        memory,
        NOW,
        lambda eviction: eviction.name not in refuses,
    )


def gone(found: EvictionOutcome) -> str:
    return "".join(one.name for one in found.plan.evictions)


def going(name: str, seconds: int) -> EvictionMemory:
    """A pod went so many seconds ago."""
    return EvictionMemory(LONG_AGO.last, {("default", name, name): NOW - seconds * NANOSECONDS})


@pytest.mark.parametrize(
    ("said", "expected", "note"),
    [
        ({}, "b", ""),
        ({"age": 2}, "b", ""),
        ({"age": 2.5}, "", "was not measured lately"),
        ({"age": 2.5, "staleAfter": "5s"}, "b", ""),
        ({"memory": EvictionMemory(NOW - 3 * NANOSECONDS)}, "", "a moment ago"),
        ({"memory": EvictionMemory(NOW - 4 * NANOSECONDS)}, "b", ""),
        ({"refuses": "b"}, "ca", ""),
        ({"refuses": "abc"}, "", "is not satisfied"),
        ({"refuses": "b", "mostAtOnce": 1}, "c", "is not satisfied"),
        ({"memory": going("b", 60)}, "", ""),
        ({"memory": going("b", 120)}, "b", ""),
        ({"memory": going("c", 60)}, "b", ""),
        ({"memory": going("gone", 60)}, "b", ""),
        ({"mostPerHour": 1, "memory": EvictionMemory(0, {}, (NOW - NANOSECONDS,))}, "", "within the hour"),
        ({"mostPerHour": 1, "memory": EvictionMemory(0, {}, (NOW - 3601 * NANOSECONDS,))}, "b", ""),
    ],
)
def test_a_round(said: dict[str, Any], expected: str, note: str) -> None:
    found = outcome(**said)
    assert gone(found) == expected
    assert note in " ".join(found.plan.notes)
    assert bool(note) == bool(found.plan.notes)


def test_what_went_is_remembered_and_says_how_it_goes() -> None:
    found = outcome(by="EvictionOrStop")
    assert found.plan.evictions == (
        Eviction("default", "b", "b", "BEMemoryEvict", "MemoryEviction", "EvictionOrStop"),
    )
    assert found.memory == EvictionMemory(NOW, {("default", "b", "b"): NOW}, (NOW,))


names = st.sampled_from("abcdef")
amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 100), max_size=2)
tasks = st.lists(
    st.builds(
        EvictionTask,
        reason=st.just("r"),
        target=st.sampled_from(Target),
        release=amounts,
        pods=st.lists(names, unique=True),
        amounts=st.dictionaries(names, amounts),
    ),
    max_size=4,
)


@given(tasks, st.sets(names), st.sets(names), st.none() | st.integers(0, 3))
def test_a_round_never_takes_more_than_it_may(
    wanted: list[EvictionTask[str]], before: set[str], refuse: set[str], most: int | None
) -> None:
    asked: list[str] = []

    def evict(pod: str, _reason: str) -> bool:
        asked.append(pod)
        return pod not in refuse

    found = eviction_round(wanted, before, evict, most)
    assert not set(found.evicted) & (refuse | before)
    assert set(found.pending) <= before
    assert most is None or len(found.evicted) <= most
    assert set(found.evicted) <= {pod for task in wanted for pod in task.pods}
    for task, done in zip(wanted, found.satisfied, strict=True):
        released = found.released.get(task.target, {})
        assert done == all(amount <= released.get(name, 0) for name, amount in task.release.items())


def test_the_less_protected_class_goes_first_where_rules_do_not_say() -> None:
    spec = {"bestEffort": {"candidates": True, "order": [{"cel": "pod.namespace"}]}}
    compiled = graph(document("MemoryEviction", "ours", spec))
    classes = {"c": "LS", "a": "BE", "b": "LSR", "d": "BE"}
    pods = [Pod(name, uid=name, labels={QOS_CLASS: qos}, phase="Running") for name, qos in classes.items()]
    sight = NodeSight(Node("n", capacity={"memory": 100}), pods, NodeMetric("n", updated_at=NOW))
    record = agent_record(compiled, CPUSuppression(compiled), sight, NOW)
    found = Evictable(compiled, KIND, record, NOW).candidates("bestEffort")
    assert [one["name"] for one in found] == ["d", "a", "c", "b"]
