"""Fragmentation of devices: the published example, a plain count of the same, and what is kept between pods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.device_fragmentation import (
    KeptFragmentation,
    UsualPods,
    gradient,
    usual_pods,
)
from koordpolicy.algorithms.usual_pod import UsualPod, usual_pod

EXAMPLE = [UsualPod(4000, 1000, 1, 0.5), UsualPod(4000, 400, 1, 0.3), UsualPod(8000, 0, 0, 0.2)]
ONE = np.array(["T4"], np.object_)


def kept(usual: list[UsualPod], free: list[list[int]], models: list[str]) -> KeptFragmentation:
    found = KeptFragmentation(UsualPods(usual))
    found.follow(np.array(free), np.array(models, np.object_))
    return found


def test_the_example_of_the_study() -> None:
    found = kept(EXAMPLE, [[500, 1000]], ["T4"])
    usual, cpu = found.usual, np.array([10_000])
    every = np.array([usual.allowed("T4")])
    lost = usual.lost(np.array([[500, 1000]]), every)[0, usual.level(cpu)[0]]
    assert lost / usual.weight == pytest.approx(550)
    cards = found.drops_of_devices(0, [500, 1000], 10_000, 4000, 400)
    assert cards == pytest.approx([250, -220])
    assert gradient(np.array(cards), 1000).tolist() == [56, 44]
    assert found.drops(cpu, 4000, 400, 1).tolist() == pytest.approx([250])
    assert found.fragmentation(cpu) == pytest.approx(550)


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


def expected(
    sorts: list[UsualPod], node: tuple[int, list[int], str], asked: int, each: int, count: int
) -> list[float]:
    """The drop for each device that a pod may get, or for those with least free that will do."""
    spare, cards, model = node
    fitting = sorted((card for card in range(len(cards)) if cards[card] >= each), key=cards.__getitem__)
    ways = [[card] for card in fitting] if count == 1 else [fitting[:count]] * (len(fitting) >= count)
    after = [[card - each * (place in way) for place, card in enumerate(cards)] for way in ways]
    before = plain(sorts, spare, cards, model)
    return [before - plain(sorts, spare - asked, one, model) for one in after]


@given(
    st.lists(SORTS, min_size=1, max_size=5),
    st.lists(NODES, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), NODES), max_size=4),
    st.tuples(st.integers(0, 4), st.integers(1, 10), st.integers(0, 3)),
)
def test_drops_are_those_of_a_plain_count(
    sorts: list[UsualPod],
    nodes: list[tuple[int, list[int], str]],
    changes: list[tuple[int, tuple[int, list[int], str]]],
    asked: tuple[int, int, int],
) -> None:
    cpu, each, count = asked
    found = kept(sorts, [cards for _, cards, _ in nodes], [model for _, _, model in nodes])
    for at, change in [(0, nodes[0]), *changes]:
        row = at % len(nodes)
        nodes[row] = change
        free = np.array([cards for _, cards, _ in nodes])
        found.follow(free, np.array([model for _, _, model in nodes], np.object_), [row])
        spare = np.array([one[0] for one in nodes])
        best = [max(expected(sorts, one, cpu, each, count), default=-np.inf) for one in nodes]
        assert found.drops(spare, cpu, each, count).tolist() == pytest.approx(best)
        rows = np.array([row])
        assert found.drops(spare[rows], cpu, each, count, rows).tolist() == pytest.approx([best[row]])
        if count == 1:
            cards = found.drops_of_devices(row, change[1], change[0], cpu, each)
            able = sorted(one for one in cards if one > -np.inf)
            assert able == pytest.approx(sorted(expected(sorts, change, cpu, each, 1)))


def test_what_changes_nothing_changes_it_by_nothing() -> None:
    # Weights brought to a sum of 1 first leave some 1e-17 here, of which a whole score would be one less.
    sorts = [
        UsualPod(cpu, each, 1, weight)
        for cpu, each, weight in ((1, 1, 7), (2, 2, 11), (3, 3, 13), (4, 3, 18))
    ]
    found = kept(sorts, [[9, 8, 7]], [""])
    assert found.drops(np.array([9]), 1, 3, 1).tolist() == [0.0]


def test_sorts_of_pods_as_policy_writes_them() -> None:
    assert usual_pod("4000m", 3) == UsualPod(4000, 0, 0, 3)
    assert usual_pod("8000m 2x100 A100|H100", 1) == UsualPod(8000, 100, 2, 1, frozenset({"A100", "H100"}))
    assert usual_pods({}) is None
    for wrong in ("", "4000", "4000m 1", "4000m 1x", "4000m  1x5", "-1m", "4000m 1x50 A B"):
        with pytest.raises(ValueError, match="is no pod such as"):
            usual_pod(wrong, 1)
    with pytest.raises(ValueError, match="below 0"):
        usual_pods({"4000m 1x50": -1})
