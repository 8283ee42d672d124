"""Times, durations, integers, CPU lists and label selectors: text in, values out."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.integers import parse_int_any_base
from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator, parse_selector, read_selector
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.time import EARLIEST, LATEST, NANOSECONDS, parse_duration, parse_time, time_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-07-01T08:00:00Z", 1_782_892_800 * NANOSECONDS),
        ("2026-07-01T10:00:00+02:00", 1_782_892_800 * NANOSECONDS),
        ("2026-07-01T08:00:00.5Z", 1_782_892_800 * NANOSECONDS + 500_000_000),
        ("2026-07-01T08:00:00.123456789Z", 1_782_892_800 * NANOSECONDS + 123_456_789),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2026-07-01T08:00:00." + "123456789" * 3 + "123Z", 1_782_892_800 * NANOSECONDS + 123_456_789),
        ("2016-12-31T23:59:60Z", 1_483_228_800 * NANOSECONDS),
        ("2016-12-31t23:59:60.25z", 1_483_228_800 * NANOSECONDS + 250_000_000),
        ("0001-01-01T00:00:00Z", EARLIEST),
        ("0001-01-01T00:00:00+23:59", EARLIEST),
        ("0000-02-29T12:00:00Z", EARLIEST),
        ("9999-12-31T23:59:59.9999999999Z", LATEST),
        ("9999-12-31T23:59:60-23:59", LATEST),
        ("2999-12-31T00:00:00Z", 32_503_593_600 * NANOSECONDS),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2026-07-01", "2026-07-01T08:00:00", "2026-13-01T00:00:00Z", "0" * 99),
        *("2026-02-29T00:00:00Z", "2026-07-01T24:00:00Z", "2026-07-01T08:60:00Z", "2026-07-01T08:00:61Z"),
        *(
            "2026-07-01T08:00:00+24:00",
            "2026-07-01T08:00:00+00:60",
            "2026-07-01T08:00:00.Z",
            "0000-00-00T00:00:00Z",
        ),
    ],
)
def test_no_times(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|month|must be in"):
        parse_time(text)


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001
def test_time_text_is_read_back(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    nanoseconds = parse_time(whole.isoformat().replace("+00:00", "Z"))
    assert parse_time(time_text(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("1h30m", 5400),
        ("90s", 90),
        ("0", 0),
        ("-5s", -5),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("5m0s", 300),
        ("100ms", 0.1),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("+2s", 2),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == round(seconds * NANOSECONDS)


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "5d", "1h-1m", ".s", "-", "1" * 70 + "s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("17", 17),
        ("-17", -17),
        ("0x10", 16),
        ("0X1f", 31),
        ("010", 8),
        ("0o10", 8),
        ("0b101", 5),
        ("1_000", 1000),
        ("0x_1", 1),
        ("+5", 5),
        ("-0x10", -16),
        ("00", 0),
        ("2147483647", 2**31 - 1),
    ],
)
def test_integers_in_any_base(text: str, expected: int) -> None:
    assert parse_int_any_base(text, 32) == expected


@pytest.mark.parametrize(
    "text", ["", "1.0", "0x", "08", "_1", "1_", "1__0", "abc", " 1", "2147483648", "1e3", "0b2"]
)
def test_no_integers(text: str) -> None:
    with pytest.raises(ValueError, match=r"whole number|fit"):
        parse_int_any_base(text, 32)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", set()), ("\n", set()), ("3", {3}), ("0-3,8", {0, 1, 2, 3, 8}), ("8,0-1", {0, 1, 8}), ("1,1", {1})],
)
def test_cpu_lists(text: str, cpus: set[int]) -> None:
    assert parse_cpuset(text) == cpus


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "-1", "1,,2", "0-4000000000", "70000", "1;2", "0-3:2/4"])
def test_no_cpu_lists(text: str) -> None:
    with pytest.raises(ValueError, match="CPU"):
        parse_cpuset(text)


SELECTORS = [
    # text, labels that match, labels that do not
    ("", {}, None),
    ("app=web", {"app": "web"}, {"app": "db"}),
    ("app==web", {"app": "web"}, {}),
    ("app!=web", {}, {"app": "web"}),
    ("app in (web, db)", {"app": "db"}, {"app": "x"}),
    ("app notin (web,db)", {}, {"app": "db"}),
    ("app", {"app": ""}, {}),
    ("!app", {}, {"app": ""}),
    ("a=1,b in (2,3), !c", {"a": "1", "b": "3"}, {"a": "1", "b": "3", "c": ""}),
    ("koordinator.sh/qosClass=BE", {"koordinator.sh/qosClass": "BE"}, {}),
    ("in=1", {"in": "1"}, {}),
]


@pytest.mark.parametrize(("text", "matching", "other"), SELECTORS)
def test_selectors_from_text(text: str, matching: dict[str, str], other: dict[str, str] | None) -> None:
    selector = parse_selector(text)
    assert selector.matches(matching)
    assert other is None or not selector.matches(other)


@pytest.mark.parametrize("text", ["a=b c", "a in b", "=b", "a in (", "!", "a=b,,c", "a~b"])
def test_no_selectors(text: str) -> None:
    with pytest.raises(ValueError, match="label requirement"):
        parse_selector(text)


def test_selectors_from_json() -> None:
    selector = read_selector(
        {
            "matchLabels": {"pool": "colocated"},
            "matchExpressions": [
                {"key": "zone", "operator": "NotIn", "values": ["a"]},
                {"key": "gpu", "operator": "DoesNotExist"},
            ],
        }
    )
    assert selector == LabelSelector(
        (
            LabelRequirement("pool", Operator.IN, frozenset({"colocated"})),
            LabelRequirement("zone", Operator.NOT_IN, frozenset({"a"})),
            LabelRequirement("gpu", Operator.DOES_NOT_EXIST),
        )
    )
    assert selector.matches({"pool": "colocated"})
    assert not selector.matches({"pool": "colocated", "gpu": "1"})


@pytest.mark.parametrize(
    ("selector", "place"),
    [
        ({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, "operator: `Gt`"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, r"\[0\]: In needs values"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}, "takes no values"),
        ({"matchLabels": {"a": 1}}, r"matchLabels\[a\]: expected text"),
        ({"matchLabels": []}, "matchLabels: expected a mapping"),
    ],
)
def test_malformed_selectors_name_the_place(selector: dict[str, object], place: str) -> None:
    with pytest.raises(ObjectError, match=place):
        read_selector(selector)
