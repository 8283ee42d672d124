"""What histories of containers take: as much for a year as for an hour, and little enough for 10,000 workloads."""

import random
import tracemalloc

from koordpolicy.algorithms.recommended import Layout
from koordpolicy.manager.recommender.histories import ContainerHistory, Histories

HOUR = 3_600 * 10**9
START = 1_800_000_000 * 10**9
LAYOUTS = {
    "cpu": Layout(0.025, 0.05, 1024.0, 12 * HOUR),
    "memory": Layout(5 * 2**20, 0.05, 2.0**41, 24 * HOUR),
}
"""Those of the pack."""
WORKLOADS = 500
MOST = 80_000_000
"""Bytes for 10,000 workloads."""


def test_what_histories_take_does_not_grow_with_samples_and_is_little() -> None:
    chance = random.Random(7)
    histories = Histories()
    tracemalloc.start()
    try:
        for number in range(WORKLOADS):
            histories.follow(("ns", f"w{number}"), {"main": ContainerHistory.new(LAYOUTS, START)})
        taken = []
        for hours in (range(24), range(24, 24 * 365, 24 * 5)):
            for key in histories:
                history = histories.of(key)["main"]
                for hour in hours:
                    used = {"cpu": chance.lognormvariate(-1, 2), "memory": chance.lognormvariate(20, 2)}
                    history.add(used, 1.0, START + hour * HOUR, shared=False)
            taken.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    day, year = taken
    assert year < day * 1.05
    assert year / WORKLOADS * 10_000 < MOST
