"""Rings of measurements against plain lists."""

import math
from array import array
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.agent.measurements.table import MOST_MOMENTS, MeasurementTable, Reach
from koordpolicy.algorithms.aggregation import SHARES

SECOND = 10**9
NAMES = "abcdefgh"


def by_hand(values: list[float], name: str) -> float:
    if name == "avg":
        return sum(values) / len(values)
    return sorted(values)[max(math.floor(len(values) * SHARES[name] + 1e-6) - 1, 0)]


rounds = st.lists(
    st.tuples(
        st.floats(0.8, 3),
        st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1e12), max_size=len(NAMES)),
    ),
    max_size=60,
)


@given(rounds, st.integers(1, 20))
def test_answers_as_a_list_of_all_that_was_measured_would(
    given_rounds: list[tuple[float, dict[str, float]]], window: int
) -> None:
    table: MeasurementTable[str] = MeasurementTable(("use",), Reach(20 * SECOND, SECOND), most=8)
    now, known = 0, []
    for wait, found in given_rounds:
        now += int(wait * SECOND)
        table.add(now, {name: (value,) for name, value in found.items()})
        known.append((now, found))
    by_subject = defaultdict(list)
    for at, found in known:
        if now - window * SECOND <= at:
            for name, value in found.items():
                by_subject[name].append((at, value))
    excerpt = table.excerpt("use", now, window * SECOND)
    for name in ("avg", *SHARES):
        assert excerpt.aggregate(name) == {
            subject: pytest.approx(by_hand([value for _, value in points], name))
            for subject, points in by_subject.items()
        }
    assert excerpt.latest() == {subject: points[-1][1] for subject, points in by_subject.items()}
    counted = {subject: count for subject, count in excerpt.counts().items() if count}
    assert counted == {subject: len(points) for subject, points in by_subject.items()}
    spans = excerpt.spans()
    assert all(spans[subject] == points[-1][0] - points[0][0] for subject, points in by_subject.items())
    assert table.refused == 0


def test_memory_stays_bounded_whatever_comes_and_goes() -> None:
    table: MeasurementTable[int] = MeasurementTable(("cpu", "memory"), Reach(10 * SECOND, SECOND), most=16)
    sizes = set()
    for step in range(500):
        table.add(step * SECOND, {step * 3 + one: (1.0, 2.0) for one in range(3)})
        sizes.add(table.nbytes)
    assert len(table) <= 16
    assert max(sizes) == (2 + 2 * 16) * 11 * 8
    assert table.refused > 0
    assert table.latest("memory", 499 * SECOND, SECOND)


def test_a_row_that_is_given_on_begins_empty() -> None:
    table: MeasurementTable[str] = MeasurementTable(("cpu",), Reach(5 * SECOND, SECOND), most=1)
    table.add(0, {"old": (7.0,)})
    table.add(6 * SECOND, {"new": (1.0,)})
    assert table.excerpt("cpu", 6 * SECOND, 100 * SECOND).aggregate("avg") == {"new": 1.0}


def test_a_clock_that_is_set_back_adds_nothing() -> None:
    table: MeasurementTable[str] = MeasurementTable(("cpu",), Reach(5 * SECOND, SECOND), most=1)
    for at in (3, 1, 3, 4):
        table.add(at * SECOND, {"node": (float(at),)})
    excerpt = table.excerpt("cpu", 9 * SECOND, 9 * SECOND)
    assert {subject: list(values) for subject, values in excerpt.values.items()} == {"node": [3.0, 4.0]}


def test_long_windows_are_thinned_and_hold_their_latest() -> None:
    window = 4 * MOST_MOMENTS * SECOND
    table: MeasurementTable[str] = MeasurementTable(("cpu",), Reach(window, SECOND), most=1)
    for at in range(1, 1000):
        table.add(at * SECOND, {"node": (float(at),)})
    excerpt = table.excerpt("cpu", 1000 * SECOND, window)
    assert excerpt.latest() == {"node": 999.0}
    assert 240 <= excerpt.counts()["node"] <= 260


def test_another_reach_keeps_what_fits() -> None:
    table: MeasurementTable[str] = MeasurementTable(("cpu",), Reach(60 * SECOND, SECOND), most=4)
    for at in range(60):
        table.add(at * SECOND, {"node": (float(at),), **({"pod": (1.0,)} if at < 3 else {})})
    shorter = table.reaching(Reach(10 * SECOND, SECOND))
    assert shorter.excerpt("cpu", 59 * SECOND, 60 * SECOND).times == array(
        "q", [at * SECOND for at in range(49, 60)]
    )
    longer = shorter.reaching(Reach(600 * SECOND, SECOND))
    assert longer.excerpt("cpu", 59 * SECOND, 600 * SECOND).counts() == {"node": 11}
    assert longer.reaching(longer.reach) is longer


def test_nobody_measured_is_nobody_known() -> None:
    table: MeasurementTable[str] = MeasurementTable(("cpu",), Reach(5 * SECOND, SECOND), most=1)
    for excerpt in (table.excerpt("cpu", 0, SECOND), table.excerpt("cpu", SECOND, SECOND)):
        assert excerpt.aggregate("avg") == excerpt.latest() == {}
    table.add(0, {})
    assert table.latest("cpu", 0, SECOND) == {}
