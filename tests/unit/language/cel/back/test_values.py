"""Values: equality, order, keys, times, plain data."""

import datetime as dt
import itertools
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.language.cel.errors import CelError, NoSuchOverload
from koordpolicy.language.cel.values import (
    FALSE_KEY,
    NONE,
    TRUE_KEY,
    URL,
    Duration,
    Optional,
    Quantity,
    Timestamp,
    TypeValue,
    UInt,
    key_of,
    key_value,
    type_name,
)
from koordpolicy.language.cel.values_equality import equal, in_map, order
from koordpolicy.language.cel.values_plain import to_plain
from koordpolicy.language.cel.values_time import (
    calendar,
    format_duration,
    format_timestamp,
    local_seconds,
    parse_duration,
    parse_timestamp,
    weekday,
)

NAN = math.nan
SAMPLES: tuple[Any, ...] = (
    None, True, False, 0, 1, UInt(1), 1.0, 0.5, NAN, "", "a", b"a", [], [1], {}, {"a": 1}, Duration(1),
    Timestamp(1), TypeValue("int"), NONE, Optional(1), Quantity(1),
)  # fmt: skip


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(range(len(SAMPLES)), 2)))
def test_equality_has_no_errors_and_is_symmetric(a: int, b: int) -> None:
    one, other = SAMPLES[a], SAMPLES[b]
    numbers = {3: "n0", 4: "n1", 5: "n1", 6: "n1"}
    same = numbers.get(a, a) == numbers.get(b, b) and a != SAMPLES.index(NAN)
    assert equal(one, other) is same
    assert equal(other, one) is same


def test_order_of_numbers_is_one_line() -> None:
    line = [-math.inf, -(2.0**63), -1, 0, UInt(1), 1.5, 2, 2**62, UInt(2**64 - 1), math.inf]
    for (i, a), (j, b) in itertools.product(enumerate(line), repeat=2):
        assert order(a, b, "<") == (i > j) - (i < j)
    assert order(NAN, 1, "<") is None
    assert order(UInt(1), NAN, "<") is None
    assert order(2.0**63, 2**63 - 1, "<") == 0  # lossy by definition
    unordered: tuple[tuple[Any, Any], ...] = (
        (None, None), ([1], [1]), ("a", 1), (True, 1), (Duration(1), Timestamp(1)), (b"a", "a"),
    )  # fmt: skip
    for one, other in unordered:
        with pytest.raises(NoSuchOverload):
            order(one, other, "<")


def test_true_is_no_one_among_keys() -> None:
    keys: dict[object, object] = {
        key_of(True): "yes",
        key_of(1): "one",
        key_of(False): "no",
        key_of(0): "zero",
    }
    assert len(keys) == 4
    assert [key_value(key) for key in keys] == [True, 1, False, 0]
    assert in_map(1.0, keys) and in_map(UInt(0), keys) and in_map(True, keys)
    assert not in_map(0.5, keys) and not in_map(b"a", keys) and not in_map([], keys)


def test_single_values_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps([TRUE_KEY, FALSE_KEY, NONE])) == [TRUE_KEY, FALSE_KEY, NONE]  # noqa: S301
    assert type_name(pickle.loads(pickle.dumps(UInt(3)))) == "uint"  # noqa: S301


def test_types_are_told_apart() -> None:
    assert [type_name(value) for value in (True, 1, UInt(1), 1.0, None)] == [
        "bool", "int", "uint", "double", "null_type",
    ]  # fmt: skip
    with pytest.raises(TypeError):
        type_name(object())


# Times

NANOSECONDS = st.integers(-(2**63), 2**63 - 1)
MOMENTS = st.integers(-62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1)


@given(NANOSECONDS)
def test_durations_are_read_back_as_they_are_written(ns: int) -> None:
    assert parse_duration(format_duration(Duration(ns))).ns == ns


@given(MOMENTS)
def test_timestamps_are_read_back_as_they_are_written(ns: int) -> None:
    assert parse_timestamp(format_timestamp(Timestamp(ns))).ns == ns


@given(MOMENTS)
def test_the_calendar_is_pythons(ns: int) -> None:
    seconds = ns // 10**9
    there = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)  # noqa: DTZ001 - compared field by field
    assert calendar(seconds) == (there.year, there.month, there.day, there.timetuple().tm_yday)
    assert weekday(seconds) == there.isoweekday() % 7


@given(st.text(alphabet="0123456789hmsnuµ.-+", max_size=12))
def test_no_text_breaks_the_reading_of_durations(text: str) -> None:
    try:
        value = parse_duration(text)
    except CelError:
        return
    assert parse_duration(format_duration(value)) == value


@given(st.text(alphabet="0129-:TZ.+", max_size=25))
def test_no_text_breaks_the_reading_of_timestamps(text: str) -> None:
    try:
        value = parse_timestamp(text)
    except CelError:
        return
    assert parse_timestamp(format_timestamp(value)) == value


def test_zones_shift_the_clock() -> None:
    winter = parse_timestamp("2024-01-15T12:00:00Z")
    summer = parse_timestamp("2024-07-15T12:00:00Z")
    hours = [(local_seconds(t, "Europe/Berlin") - t.ns // 10**9) // 3600 for t in (winter, summer)]
    assert hours == [1, 2]


# Plain data


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=10,
    )
)
def test_json_data_is_its_own_plain_form(data: Any) -> None:
    assert to_plain(data) == data


def test_other_values_have_a_plain_form() -> None:
    value = {
        TRUE_KEY: b"\xff", UInt(1): [Duration(10**9), Timestamp(0)], "o": Optional(TypeValue("int")), "n": NONE,
        "q": Quantity(5 * 10**8), "u": URL("/a", "", "", "/a", ""), "d": NAN,
    }  # fmt: skip
    assert to_plain(value) == {
        "true": "/w==", "1": ["1s", "1970-01-01T00:00:00Z"], "o": "int", "n": None, "q": 0.5, "u": "/a", "d": "nan",
    }  # fmt: skip
    with pytest.raises(TypeError):
        to_plain(object())
