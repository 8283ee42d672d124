"""What pods wish: within their requests, by day and night, equal for equal seeds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.simulator.usage import SHAPE, Population
from koordpolicy.simulator.workload import EAGER, SERVICE, Wave

HOUR = 3600.0


def population(seed: int = 1) -> Population:
    return Population(SHAPE, np.random.default_rng(seed))


@given(
    requests=st.lists(st.integers(0, 64_000), max_size=20),
    times=st.lists(st.floats(0, 10 * 86_400), max_size=5).map(sorted),
)
def test_nobody_wishes_less_than_nothing_or_more_than_requested(
    requests: list[int], times: list[float]
) -> None:
    pods = population()
    for request in requests:
        pods.add(request, SERVICE)
    for time in times:
        wishes = pods.wishes(time)
        assert len(wishes) == len(requests)
        assert all(0 <= wish <= request for wish, request in zip(wishes, requests, strict=True))


def test_a_level_wave_has_no_noise() -> None:
    pods = population()
    pods.add(1000, EAGER)
    assert [pods.wishes(hour * HOUR)[0] for hour in range(24)] == [950.0] * 24


def test_services_are_busy_at_their_peak_and_quiet_twelve_hours_later() -> None:
    pods = population()
    for _ in range(200):
        pods.add(1000, Wave(0.1, 0.5, 14.0))
    day, night = pods.wishes(14 * HOUR).mean(), pods.wishes(26 * HOUR).mean()
    assert 440 < day < 520
    assert 80 < night < 160


def test_the_slot_of_a_pod_that_is_gone_wishes_nothing_and_is_used_again() -> None:
    pods = population()
    first, _ = pods.add(1000, EAGER), pods.add(1000, EAGER)
    pods.remove(first)
    assert pods.wishes(0.0)[first] == 0.0
    assert pods.add(500, EAGER) == first
    assert pods.wishes(0.0)[first] == 475.0


def test_more_pods_than_room_was_made_for() -> None:
    pods = population()
    slots = [pods.add(100, EAGER) for _ in range(1000)]
    assert slots == list(range(1000))
    assert (pods.wishes(0.0) == 95.0).all()


def test_equal_seeds_give_equal_days() -> None:
    def day(seed: int) -> list[float]:
        pods = population(seed)
        for _ in range(5):
            pods.add(1000, SERVICE)
        return [float(pods.wishes(hour * HOUR).sum()) for hour in range(24)]

    assert day(7) == day(7)
    assert day(7) != day(8)
