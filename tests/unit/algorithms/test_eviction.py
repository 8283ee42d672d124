"""Who has to go: budgets, reprieve, room; against what the words say, worked out naively."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from koordpolicy.algorithms.eviction import (
    Crowds,
    Victims,
    candidates_to_find,
    reprieve,
    reprieve_all,
    violating,
)
from koordpolicy.model.disruption import Budget
from koordpolicy.model.labels import read_selector
from koordpolicy.model.pod import Pod


def budget(name: str, allowed: int, *disrupted: str, app: str = "web") -> Budget:
    return Budget(
        "default", name, read_selector({"matchLabels": {"app": app}}), allowed, frozenset(disrupted)
    )


def pods(*names: str, app: str = "web") -> list[Pod]:
    return [Pod(name, labels={"app": app}) for name in names]


def test_each_pod_uses_a_budget_up() -> None:
    assert violating(pods("a", "b", "c"), [budget("one", 2)]) == [False, False, True]
    assert violating(pods("a", "b", "c"), [budget("one", 1, "a")]) == [False, False, True]
    assert violating(pods("a", "b"), [budget("one", 2), budget("none", 0)]) == [True, True]
    assert violating([Pod("a")], [budget("none", 0)]) == [False], "a pod without labels is under no budget"


def test_budgets_are_kept_before_importance() -> None:
    def room_for_one(kept: list[str]) -> Any:
        def stays(name: str) -> bool:
            if kept:
                return False
            kept.append(name)
            return True

        return stays

    assert reprieve("abc", [False, False, True], room_for_one([])) == Victims(("a", "b"), 0)
    assert reprieve("abc", [False, False, False], room_for_one([])) == Victims(("b", "c"), 0)
    assert reprieve("abc", [True, False, True], room_for_one([])) == Victims(("b", "c"), 1)


def test_how_many_nodes_are_compared() -> None:
    assert [candidates_to_find(n, 10.0, 100) for n in (50, 500, 2815)] == [50, 100, 281]
    assert candidates_to_find(10, 100.0, 1) == 10
    assert candidates_to_find(1000, 0.0, 1) == 1


PODS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=6)


def room(free: int, wanted: int, pods: list[tuple[int, int, bool]]) -> Callable[[int], bool]:
    """What `reprieve` asks, for pods that take two resources of which so much is free beside them."""
    left = [free + sum(pod[kind] for pod in pods) for kind in (0, 1)]

    def stays(at: int) -> bool:
        after = [left[kind] - pods[at][kind] for kind in (0, 1)]
        if min(after) < wanted:
            return False
        left[:] = after
        return True

    return stays


@given(free=st.integers(0, 8), wanted=st.integers(0, 8), pods=PODS)
def test_nobody_goes_in_vain(free: int, wanted: int, pods: list[tuple[int, int, bool]]) -> None:
    total = [free + sum(pod[kind] for pod in pods) for kind in (0, 1)]
    assume(min(total) >= wanted)
    breaks = [pod[2] for pod in pods]
    found = reprieve(range(len(pods)), breaks, room(free, wanted, pods))

    def fits(gone: frozenset[int]) -> bool:
        return all(
            total[kind] - sum(pod[kind] for at, pod in enumerate(pods) if at not in gone) >= wanted
            for kind in (0, 1)
        )

    gone = frozenset(found.keys)
    assert fits(gone)
    assert not any(fits(gone - {at}) for at in gone), "each of them is needed"
    assert list(found.keys) == sorted(found.keys), "the most important first"
    assert found.violations == sum(breaks[at] for at in gone)


@given(st.lists(st.tuples(st.integers(0, 8), PODS), min_size=1, max_size=5), st.integers(0, 8))
def test_many_nodes_at_once_are_as_one_by_one(
    nodes: list[tuple[int, list[tuple[int, int, bool]]]], wanted: int
) -> None:
    most = max(len(pods) for _, pods in nodes)
    filled = [[*pods, *[(0, 0, False)] * (most - len(pods))] for _, pods in nodes]
    table = np.array([[pod[:2] for pod in pods] for pods in filled], np.int64).reshape(len(nodes), most, 2)
    present = np.array([[at < len(pods) for at in range(most)] for _, pods in nodes], np.bool_)
    breaks = np.array([[pod[2] for pod in pods] for pods in filled], np.bool_)
    shape = (len(nodes), most)
    crowds = Crowds(table, present.reshape(shape), breaks.reshape(shape))
    free = np.array([[free] * 2 for free, _ in nodes], np.int64) + table.sum(axis=1)
    victims, enough = reprieve_all(np.array([wanted, wanted]), free, crowds)
    for at, (left, pods) in enumerate(nodes):
        assert enough[at] == (min(left + sum(pod[kind] for pod in pods) for kind in (0, 1)) >= wanted)
        if enough[at]:
            found = reprieve(range(len(pods)), [pod[2] for pod in pods], room(left, wanted, pods))
            assert np.flatnonzero(victims[at]).tolist() == list(found.keys)
