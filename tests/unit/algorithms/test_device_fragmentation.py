"""Fragmentation of devices: the published example, a plain count of the same, and what is kept between pods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.device_fragmentation import (
    KeptDrops,
    UsualPod,
    UsualPods,
    drops,
    gradient,
    usual_pod,
    usual_pods,
)

EXAMPLE = [UsualPod(4000, 1000, 1, 0.5), UsualPod(4000, 400, 1, 0.3), UsualPod(8000, 0, 0, 0.2)]
ONE = np.array(["T4"], np.object_)


def test_the_example_of_the_study() -> None:
    usual, cpu, free = UsualPods(EXAMPLE), np.array([10_000]), np.array([[500, 1000]])
    assert usual.fragmentation(cpu, free, ONE).tolist() == pytest.approx([550])
    found = drops(usual, cpu, free, ONE, 4000, 400, 1)
    assert found[0].tolist() == pytest.approx([250, -220])
    assert gradient(found, 1000).tolist() == [[56, 44]]


def plain(usual: list[UsualPod], cpu: int, free: list[int], model: str) -> float:
    """The same, word by word."""
    lost = 0.0
    for one in usual:
        able = sum(card >= one.each for card in free) >= one.devices > 0 and cpu >= one.cpu
        if able and (not one.models or model in one.models):
            lost += one.weight * sum(card for card in free if card < one.each)
        else:
            lost += one.weight * sum(free)
    return lost / sum(one.weight for one in usual)


SORTS = st.builds(
    UsualPod,
    st.integers(0, 9),
    st.integers(1, 10),
    st.integers(0, 3),
    st.integers(1, 5),
    st.sampled_from([frozenset(), frozenset({"T4"}), frozenset({"T4", "G2"})]),
)
NODES = st.tuples(
    st.integers(0, 9),
    st.lists(st.integers(0, 10), min_size=3, max_size=3),
    st.sampled_from(["T4", "G2", "P100", ""]),
)


@given(
    st.lists(SORTS, min_size=1, max_size=5),
    st.lists(NODES, min_size=1, max_size=4),
    st.integers(0, 4),
    st.integers(1, 10),
    st.integers(0, 3),
)
def test_drops_are_those_of_a_plain_count(
    sorts: list[UsualPod], nodes: list[tuple[int, list[int], str]], asked: int, each: int, count: int
) -> None:
    cpu, free = np.array([one[0] for one in nodes]), np.array([one[1] for one in nodes])
    models = np.array([one[2] for one in nodes], np.object_)
    usual, kept = UsualPods(sorts), KeptDrops()
    found = drops(usual, cpu, free, models, asked, each, count)
    for at, (spare, cards, model) in enumerate(nodes):
        fitting = [card for card in range(3) if cards[card] >= each][: 3 if count == 1 else count]
        ways = [[card] for card in fitting] if count == 1 else [fitting] * (len(fitting) == count)
        after = [[card - each * (place in way) for place, card in enumerate(cards)] for way in ways]
        before = plain(sorts, spare, cards, model)
        expected = [before - plain(sorts, spare - asked, one, model) for one in after]
        assert [one for one in found[at].tolist() if one > -np.inf] == pytest.approx(expected)
    best = found.max(axis=1)
    assert kept.best(usual, cpu, free, models, asked, each, count).tolist() == pytest.approx(best.tolist())
    free[0] = 10 - free[0]
    changed = drops(usual, cpu, free, models, asked, each, count).max(axis=1)
    assert kept.best(usual, cpu, free, models, asked, each, count).tolist() == pytest.approx(changed.tolist())


def test_sorts_of_pods_as_policy_writes_them() -> None:
    assert usual_pod("4000m", 3) == UsualPod(4000, 0, 0, 3)
    assert usual_pod("8000m 2x100 A100|H100", 1) == UsualPod(8000, 100, 2, 1, frozenset({"A100", "H100"}))
    assert usual_pods({}) is None
    for wrong in ("", "4000", "4000m 1", "4000m 1x", "4000m  1x5", "-1m", "4000m 1x50 A B"):
        with pytest.raises(ValueError, match="is no pod such as"):
            usual_pod(wrong, 1)
    with pytest.raises(ValueError, match="below 0"):
        usual_pods({"4000m 1x50": -1})
