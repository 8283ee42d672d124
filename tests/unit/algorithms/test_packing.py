"""Strategies a resource, scarce kinds, amplified CPU: single cases; the vectors have many more."""

import numpy as np
import pytest
from numpy.typing import NDArray

from koordpolicy.algorithms.amplified import short_of_cpu, short_of_cpu_one
from koordpolicy.algorithms.fit_plus import FitPlus, fit_plus_requests
from koordpolicy.algorithms.fit_score import Strategy
from koordpolicy.algorithms.scarce import kinds_of, scarce_score
from koordpolicy.model.pod import Container, Pod
from tests.unit.algorithms.clusters import amount

MI = 2**20


def column(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def test_init_containers_count_in_order_and_overhead_on_top() -> None:
    pod = Pod(
        "p",
        containers=(Container("c", requests={"cpu": 500}), Container("d")),
        init_containers=(
            Container("sidecar", requests={"cpu": 100, "memory": 0}, sidecar=True),
            Container("large", requests={"cpu": 900, "gpu": 1}),
        ),
        overhead={"cpu": 50, "memory": MI},
    )
    assert fit_plus_requests(pod) == {"cpu": 950, "memory": 401 * MI, "gpu": 1}


def test_each_resource_has_its_strategy() -> None:
    score = FitPlus({"cpu": Strategy.LEAST_ALLOCATED, "gpu": Strategy.MOST_ALLOCATED}, {"cpu": 1, "gpu": 3})
    has = {"cpu": amount(4000, 4000, 0), "gpu": amount(4, 8, 4)}
    used = {"cpu": amount(0, 0, 0), "gpu": amount(1, 0, 4)}
    pod = Pod("p", containers=(Container("c", requests={"cpu": 1000, "gpu": 1}),))
    assert score.score_all(pod, has, used, used, 3).tolist() == [56, 27, 75]
    plain = Pod("p", containers=(Container("c", requests={"memory": MI}),))
    assert score.score_all(plain, has, used, used, 3).tolist() == [100, 100, 100]


@pytest.mark.parametrize(
    ("node", "pod", "score"),
    [
        ({"cpu", "gpu"}, {"cpu"}, 0),
        ({"cpu", "gpu", "x"}, {"cpu"}, 50),
        ({"cpu", "gpu"}, {"cpu", "gpu"}, 100),
        ({"cpu"}, {"cpu"}, 100),
        ({"cpu", "x"}, set(), 100),
    ],
)
def test_what_would_be_left_idle(node: set[str], pod: set[str], score: int) -> None:
    assert scarce_score(node, pod, ["gpu"]) == score


def test_kinds_are_what_there_is_something_of() -> None:
    assert kinds_of({"cpu": 1, "memory": 0, "pods": 110, "gpu": 8}) == {"cpu", "gpu"}


def test_pods_that_own_cpus_cost_more_where_cpu_is_amplified() -> None:
    ratio = np.array([1.0, 2.0, 2.0, 2.0])
    has, used, bound = (
        column(8000, 16000, 16000, 16000),
        column(7000, 7000, 7000, 7000),
        column(0, 0, 4000, 8000),
    )
    nodes = {"ratio": ratio, "allocatable": has, "requested": used, "bound": bound}
    assert short_of_cpu(5000, binds=True, **nodes).tolist() == [False, True, True, True]
    assert short_of_cpu(5000, binds=False, **nodes).tolist() == [False, False, False, False]
    assert short_of_cpu(4500, binds=True, **nodes).tolist() == [False, False, True, False]
    assert short_of_cpu(0, binds=True, **nodes).tolist() == [False] * 4


@pytest.mark.parametrize(
    ("ratio", "requested", "bound", "request_", "binds", "short"),
    [
        (1.5, 0, 0, 64_000, True, False),
        (1.5, 0, 0, 64_001, True, True),
        (1.5, 0, 0, 96_000, False, False),
        (1.5, 32_000, 32_000, 48_000, False, False),
        (1.5, 32_000, 32_000, 48_001, False, True),
        (1.0, 96_000, 96_000, 1, True, False),
        (2.0, 99_000, 0, 0, True, False),
    ],
)
def test_owned_cpus_count_at_their_amplified_size(
    ratio: float, requested: int, bound: int, request_: int, binds: bool, short: bool
) -> None:
    assert short_of_cpu_one(request_, binds=binds)(ratio, 96_000, requested, bound) is short


@pytest.mark.parametrize("ratio", [float("inf"), 1e30])
def test_a_ratio_without_measure_leaves_no_room_for_owned_cpus(ratio: float) -> None:
    nodes = {
        "ratio": np.full(2, ratio),
        "allocatable": column(16000, 16000),
        "requested": column(0, 1000),
        "bound": column(0, 1000),
    }
    assert short_of_cpu(1, binds=True, **nodes).tolist() == [True, True]
    assert short_of_cpu(1, binds=False, **nodes).tolist() == [False, True]


@pytest.mark.parametrize("ratio", [float("nan"), float("-inf"), -1e308, 0.5])
def test_a_ratio_that_amplifies_nothing_refuses_nobody(ratio: float) -> None:
    nodes = {
        "ratio": np.full(2, ratio),
        "allocatable": column(0, 0),
        "requested": column(0, 1000),
        "bound": column(0, 1000),
    }
    assert short_of_cpu(2**53, binds=True, **nodes).tolist() == [False, False]
