"""Literals become run-time values as Kubernetes reads them."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.language.cel.types import (
    AMOUNT,
    BANDWIDTH,
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    MEMORY,
    PERCENT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
)
from koordpolicy.language.cel.values import Duration, Timestamp, UInt
from koordpolicy.language.kinds import BadLiteral, literal_problem, literal_value, parse_type, type_name
from koordpolicy.language.kinds.typenames import SIMPLE_TYPES

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("type_", "literal", "value"),
    [
        (CPU, 4, 4000),
        (CPU, "4", 4000),
        (CPU, 0.5, 500),
        (CPU, "500m", 500),
        (CPU, "1.5", 1500),
        (CPU, 0.0001, 1),
        (CPU, "0.5m", 1),
        (CPU, 0.29, 290),
        (CPU, -1, -1000),
        (CPU, 0, 0),
        (MEMORY, 1024, 1024),
        (MEMORY, "200Mi", 200 * 2**20),
        (MEMORY, "1.5Gi", 3 * 2**29),
        (MEMORY, "1k", 1000),
        (MEMORY, "2G", 2 * 10**9),
        (MEMORY, "1Ki", 1024),
        (MEMORY, "6Ei", 6 * 2**60),
        (MEMORY, "0.1Ki", 103),
        (BANDWIDTH, "50M", 50_000_000),
        (PERCENT, "65%", 65.0),
        (PERCENT, "12.5%", 12.5),
        (PERCENT, "-5%", -5.0),
        (DURATION, "15m", Duration(HOUR // 4)),
        (DURATION, "900s", Duration(HOUR // 4)),
        (DURATION, "1h30m", Duration(HOUR * 3 // 2)),
        (DURATION, "1.5h", Duration(HOUR * 3 // 2)),
        (DURATION, "-10ms", Duration(-10_000_000)),
        (TIMESTAMP, "1970-01-01T00:00:01Z", Timestamp(1_000_000_000)),
        (INT, 7, 7),
        (INT, 7.0, 7),
        (UINT, 7, UInt(7)),
        (DOUBLE, 7, 7.0),
        (BOOL, True, True),
        (STRING, "65%", "65%"),
        (AMOUNT, "2Gi", 2**31),
        (list_of(CPU), [1, "500m"], [1000, 500]),
        (map_of(STRING, PERCENT), {"cpu": "65%"}, {"cpu": 65.0}),
        (
            map_of(STRING, AMOUNT),
            {"cpu": "1.5", "memory": "1Gi", "pods": 3},
            {"cpu": 1500, "memory": 2**30, "pods": 3},
        ),
        (DYN, {"a": 1}, {"a": 1}),
    ],
)
def test_values(type_: Type, literal: Any, value: Any) -> None:
    read = literal_value(type_, literal)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("type_", "literal"),
    [
        (CPU, "4 cores"), (CPU, True), (CPU, None), (CPU, "1e3"), (CPU, ".5"), (CPU, "4\n"), (CPU, [1]), (CPU, "4k"),
        (MEMORY, "100K"), (MEMORY, "1ki"), (MEMORY, "1KiB"), (MEMORY, 1.5), (MEMORY, "7Ei"), (MEMORY, "10E"),
        (PERCENT, 65), (PERCENT, 0), (PERCENT, "65"), (PERCENT, "65 %"), (DURATION, 900), (DURATION, "15"),
        (DURATION, "30m1h"), (DURATION, "1d"), (DURATION, ""), (DURATION, "-"), (INT, 1.5), (INT, 2**63), (UINT, -1),
        (INT, "1"), (DOUBLE, "1.5"), (BOOL, "true"), (BOOL, 1), (STRING, 1), (TIMESTAMP, "2026-13-01T00:00:00Z"),
        (TIMESTAMP, "2026-02-30T00:00:00Z"), (list_of(CPU), "4"), (list_of(CPU), [4, "x"]), (DYN, {"a": [1]}), (DYN, None),
        (map_of(STRING, AMOUNT), {"cpu": True}), (map_of(STRING, AMOUNT), {"cel": "1"}),
    ],
)  # fmt: skip
def test_what_is_no_value(type_: Type, literal: Any) -> None:
    with pytest.raises(BadLiteral):
        literal_value(type_, literal)


def test_a_problem_within_a_list_says_where() -> None:
    problem = literal_problem(map_of(STRING, list_of(CPU)), {"a": [1, "x"]})
    assert problem is not None
    assert problem.path == ("a", 1)


@given(st.integers(1 - 10**12, 10**12 - 1), st.integers(0, 10**9 - 1))
def test_decimal_cpu_is_exact_and_rounded_up(whole: int, billionths: int) -> None:
    text = f"{whole}.{billionths:09d}"
    exact = Decimal(text) * 1000
    value = literal_value(CPU, text)
    assert isinstance(value, int)
    assert exact <= value < exact + 1


@given(st.from_regex(r"\A-?[0-9]{1,3}(\.[0-9]{1,3})?(k|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?\Z"))
def test_amounts_fit_in_64_bits(text: str) -> None:
    value = literal_value(MEMORY, text)
    assert isinstance(value, int)
    assert -(2**63) <= value < 2**63


LONGEST = (
    "999999h",
    "9999999.9m",
    "999999999s",
    "999999999999ms",
    "999999999999999us",
    "999999999999999999ns",
)


@given(st.lists(st.integers(0, len(LONGEST) - 1), min_size=1, unique=True).map(sorted))
def test_the_longest_durations_fit(units: list[int]) -> None:
    assert isinstance(literal_value(DURATION, "".join(LONGEST[unit] for unit in units)), Duration)


def test_names_of_types_are_read_back() -> None:
    for name, type_ in SIMPLE_TYPES.items():
        assert parse_type(name) == type_
        assert type_name(type_) == name
        for nested in (f"list({name})", f"map(string, {name})"):
            inner = parse_type(nested)
            assert inner is not None
            assert type_name(inner) == nested
    for name in (
        "",
        "cpus",
        "list(list(int))",
        "map(int, int)",
        "list(int",
        "list(int)x",
        "list(string, int)",
    ):
        assert parse_type(name) is None
