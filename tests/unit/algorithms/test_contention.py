"""Response times beside other work: known formulas, a queue played out, and what more work beside must do."""

import heapq
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.algorithms.contention import ALONE, Company, Rival, Service, erlang_c, knee, response_times

MILLISECOND = 0.001
EVERY = tuple((number + 0.5) / 500 for number in range(500))
"""Quantiles whose mean is the mean."""


def mean(service: Service, rate: float, beside: Company = ALONE) -> float:
    return float(response_times(service, rate, beside, EVERY).mean())


@pytest.mark.parametrize(
    ("workers", "busy", "chance"),
    [(1, 0.3, 0.3), (2, 0.5, 1 / 3), (10, 0.8, 0.40918), (3, 0.0, 0.0), (4, 1.0, 1.0), (4, 2.0, 1.0)],
)
def test_the_chance_to_wait_is_erlangs(workers: int, busy: float, chance: float) -> None:
    assert erlang_c(workers, busy) == pytest.approx(chance, abs=1e-4)


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("variation", [0.0, 1.0])
def test_one_worker_takes_what_pollaczek_and_khinchin_say(busy: float, variation: float) -> None:
    service = Service(1, MILLISECOND, variation, 1.0)
    expected = MILLISECOND * (1 + busy * (1 + variation) / 2 / (1 - busy))
    assert mean(service, busy / MILLISECOND) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("busy", [0.3, 0.6, 0.8])
def test_a_queue_that_is_played_out_answers_as_fast(busy: float) -> None:
    draw, free, at, times = random.Random(7), [0.0, 0.0], 0.0, []
    for _ in range(40_000):
        at += draw.expovariate(2 * busy)
        begins = max(at, heapq.heappop(free))
        heapq.heappush(free, begins + 1)
        times.append(begins + 1 - at)
    told = response_times(Service(2, 1.0, 0.0, 2.0), 2 * busy, ALONE, (0.5, 0.95, 0.99))
    assert told == pytest.approx(np.quantile(times, (0.5, 0.95, 0.99)), rel=0.15)


def test_beside_a_rival_of_equal_weight_requests_take_twice_as_long() -> None:
    service = Service(1, MILLISECOND, 0.0, 1.0)
    assert mean(service, 0.1, Company(rivals=(Rival(1.0, 5 * MILLISECOND),))) == pytest.approx(
        2 * MILLISECOND, rel=0.02
    )


def test_what_is_not_interrupted_at_once_shows_in_the_tail_alone() -> None:
    service = Service(4, MILLISECOND, 0.0, 4.0)
    beside = Company(rivals=(Rival(0.0, 5 * MILLISECOND, missed=0.04),))
    median, tail = response_times(service, 1.0, beside, (0.5, 0.99))
    assert median == pytest.approx(MILLISECOND)
    assert tail == pytest.approx(MILLISECOND * (1 + 5 * 3 / 4), rel=0.05)


def test_a_rival_may_come_before_each_turn_of_a_request() -> None:
    """Its share is the same, but what one turn costs at most, several cost more."""
    beside = Company(rivals=(Rival(1.0, 5 * MILLISECOND),))
    in_one, in_turns = (
        Service(1, 3 * MILLISECOND, 0.0, 1.0, (), turn) for turn in (math.inf, 1.2 * MILLISECOND)
    )
    assert mean(in_turns, 0.1, beside) == pytest.approx(6 * MILLISECOND, rel=0.02)
    tails = [response_times(one, 0.1, beside, (0.99,))[0] for one in (in_one, in_turns)]
    assert tails[0] < 3 * MILLISECOND + 6 * MILLISECOND < tails[1] < 3 * MILLISECOND + 15 * MILLISECOND


def test_work_is_spread_as_it_is_known_to_be() -> None:
    service = Service(1, MILLISECOND, 0.25, 1.0, (0.5, 1.5))
    told = response_times(service, 0.001, ALONE, (0.2, 0.8))
    assert told == pytest.approx([0.5 * MILLISECOND, 1.5 * MILLISECOND], rel=0.15)


@pytest.mark.parametrize(
    ("rate", "beside"),
    [
        (1001.0, ALONE),
        (501.0, Company(share=0.5)),
        (501.0, Company(slowdown=2.0)),
        (501.0, Company(rivals=(Rival(1.0, 0.005),))),
    ],
)
def test_more_than_can_be_answered_is_never_answered(rate: float, beside: Company) -> None:
    assert response_times(Service(1, MILLISECOND, 0.0, 1.0), rate, beside, (0.5,))[0] == math.inf


def test_the_knee_lies_where_waiting_begins_to_grow() -> None:
    service = Service(1, MILLISECOND, 0.0, 1.0)
    tail = knee(service, 0.99)
    loads = [float(response_times(service, load / MILLISECOND, ALONE, (0.99,))[0]) for load in (0.3, 0.8)]
    assert loads[0] < tail < loads[1]


@settings(max_examples=25)
@given(
    workers=st.integers(1, 16),
    loads=st.tuples(st.floats(0.01, 0.6), st.floats(1.01, 1.6)),
    variation=st.floats(0, 2),
    rival=st.builds(Rival, st.floats(0, 0.1), st.floats(0.001, 0.008), st.floats(0, 0.2), st.floats(0, 1)),
)
def test_more_load_and_more_company_never_answer_sooner(
    workers: int, loads: tuple[float, float], variation: float, rival: Rival
) -> None:
    service = Service(workers, MILLISECOND, variation, float(workers))
    rate = workers * loads[0] / MILLISECOND
    alone = mean(service, rate)
    nearly = 0.999  # of what points make of a quantile
    assert mean(service, rate * loads[1]) >= nearly * alone
    assert mean(service, rate, Company(rivals=(rival,))) >= nearly * alone
    assert mean(service, rate, Company(slowdown=1.2)) >= nearly * alone


def test_what_a_worker_owes_is_forgotten_once_it_is_paid() -> None:
    """At rare requests it waits for a rival that was let run just now, and no longer for its share; at many for both."""
    rare, often = 1.0, 300.0
    beside = Company(rivals=(Rival(1.0, 2 * MILLISECOND),))
    at_once, looked_for = (
        Service(1, MILLISECOND, 0.0, 1.0, (), MILLISECOND, tick) for tick in (0.0, 4 * MILLISECOND)
    )
    kept = [mean(one, rare, beside) - MILLISECOND for one in (at_once, looked_for)]
    assert kept[0] == pytest.approx(MILLISECOND, rel=0.05)
    assert kept[1] == pytest.approx(MILLISECOND / 4, rel=0.05)
    assert mean(looked_for, rare, beside) < mean(looked_for, often, beside) < mean(at_once, often, beside)
