"""Scores: one node and all nodes give the same numbers, within their bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms import balanced
from koordpolicy.algorithms.fit_score import FitScore, Shape, Strategy, Weights, utilization_curve
from koordpolicy.model.protocol import BATCH_CPU
from koordpolicy.model.reading import Amounts
from tests.unit.algorithms.clusters import LIST, NODES, RESOURCES, RandomNode, columns

WEIGHTS = st.lists(
    st.tuples(st.sampled_from(RESOURCES), st.integers(1, 100)), max_size=5, unique_by=lambda pair: pair[0]
)
SHAPES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 10)),
    min_size=1,
    max_size=5,
    unique_by=lambda point: point[0],
).map(sorted)
NAMES = st.lists(st.sampled_from(RESOURCES), unique=True, max_size=5)


@given(st.sampled_from(Strategy), WEIGHTS, SHAPES, LIST, LIST, NODES)
def test_fit_scores_of_all_nodes_are_those_of_each(
    strategy: Strategy,
    weights: Weights,
    shape: Shape,
    request: dict[str, int],
    nonzero: dict[str, int],
    nodes: list[RandomNode],
) -> None:
    scorer = FitScore.of(strategy, weights, shape)
    scores = scorer.score_all(
        request,
        nonzero,
        columns([node.allocatable for node in nodes]),
        columns([node.requested for node in nodes]),
        columns([node.nonzero for node in nodes]),
        len(nodes),
    )
    one_by_one = [
        scorer.score(request, nonzero, node.allocatable, node.requested, node.nonzero) for node in nodes
    ]
    assert scores.tolist() == one_by_one
    assert all(0 <= score <= 100 for score in one_by_one)


@given(NAMES, LIST, NODES)
def test_balance_of_all_nodes_is_that_of_each(
    names: list[str], request: dict[str, int], nodes: list[RandomNode]
) -> None:
    totals = columns([node.allocatable for node in nodes]), columns([node.requested for node in nodes])
    classic = balanced.classic_all(names, request, *totals, len(nodes)).tolist()
    delta = balanced.delta_all(names, request, *totals, len(nodes)).tolist()
    each = [(node.allocatable, node.requested) for node in nodes]
    assert classic == [balanced.classic_one(names, request)(*one) for one in each]
    assert delta == [balanced.delta_one(names, request)(*one) for one in each]
    assert all(0 <= score <= 100 for score in (*classic, *delta))


@given(LIST, NODES)
def test_more_free_room_never_scores_less(request: dict[str, int], nodes: list[RandomNode]) -> None:
    scorer = FitScore.of(Strategy.LEAST_ALLOCATED, [("cpu", 1), ("memory", 3)])
    for node in nodes:
        emptier = {name: used // 2 for name, used in node.nonzero.items()}
        assert scorer.score(request, request, node.allocatable, {}, emptier) >= scorer.score(
            request, request, node.allocatable, {}, node.nonzero
        )


def test_a_scalar_that_is_not_requested_takes_no_part() -> None:
    scorer = FitScore.of(Strategy.LEAST_ALLOCATED, [("cpu", 1), (BATCH_CPU, 1)])
    node: tuple[Amounts, Amounts, Amounts] = ({"cpu": 100, BATCH_CPU: 100}, {BATCH_CPU: 100}, {})
    assert scorer.score({}, {"cpu": 50}, *node) == 50
    assert scorer.score({BATCH_CPU: 1}, {"cpu": 50}, *node) == 25


def test_the_curve_is_flat_outside_and_truncates_toward_zero_between() -> None:
    curve = utilization_curve([(10, 2), (40, 9), (70, 4)])
    assert (curve[0], curve[10], curve[40], curve[100]) == (20, 20, 90, 40)
    assert curve[11] == 20 + 70 * 1 // 30
    assert curve[41] == 90 - 50 * 1 // 30  # downwards: -1.67 becomes -1
    assert len(curve) == 101


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([], "at least one point"),
        ([(0, 11)], "score of 0 to 10"),
        ([(101, 1)], "utilization of 0 to 100"),
        ([(50, 1), (50, 2)], "ascending"),
        ([(50, 1), (20, 2)], "ascending"),
    ],
)
def test_no_curve(shape: Shape, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FitScore.of(Strategy.REQUESTED_TO_CAPACITY_RATIO, [("cpu", 1)], shape)


def test_balance_of_three_resources_is_a_population_deviation() -> None:
    names = ["cpu", "memory", "nvidia.com/gpu"]
    node = dict.fromkeys(names, 100)
    used = {"cpu": 10, "memory": 40, "nvidia.com/gpu": 60}
    expected = int((1 - float(np.std([0.2, 0.4, 0.7]))) * 100)
    assert balanced.classic_one(names, {"cpu": 10, "nvidia.com/gpu": 10})(node, used) == expected


def test_nothing_to_compare_is_balanced() -> None:
    assert balanced.classic_one(["cpu"], {"cpu": 1})({}, {}) == 100
    assert balanced.delta_one(["cpu"], {"cpu": 1})({}, {}) == 75
    assert balanced.classic_all(["cpu"], {"cpu": 1}, columns([{}, {}]), columns([{}, {}]), 2).tolist() == [
        100,
        100,
    ]


def test_a_pod_that_asks_for_nothing_is_not_scored() -> None:
    assert not balanced.takes_part({"cpu": 0})
    assert balanced.takes_part({"cpu": 1})
