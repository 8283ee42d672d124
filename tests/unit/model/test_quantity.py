"""Quantities: every written form, exact values, canonical text."""

from decimal import ROUND_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.quantity import (
    INT64_MAX,
    INT64_MIN,
    Notation,
    Quantity,
    QuantityError,
    amount,
    amount_text,
    parse_quantity,
)

CANONICAL = [
    # written, canonical text, millis, units
    ("0", "0", 0, 0),
    ("0.0", "0", 0, 0),
    ("-0", "0", 0, 0),
    ("1", "1", 1000, 1),
    ("+1", "1", 1000, 1),
    ("007", "7", 7000, 7),
    ("1.", "1", 1000, 1),
    (".5", "500m", 500, 1),
    ("0.5", "500m", 500, 1),
    ("1500m", "1500m", 1500, 2),
    ("2000m", "2", 2000, 2),
    ("100u", "100u", 1, 1),
    ("100n", "100n", 1, 1),
    ("1000n", "1u", 1, 1),
    ("0.1n", "1n", 1, 1),
    ("-0.1n", "-1n", -1, -1),
    ("1k", "1k", 1_000_000, 1000),
    ("1000", "1k", 1_000_000, 1000),
    ("1100", "1100", 1_100_000, 1100),
    ("1.5M", "1500k", 1_500_000_000, 1_500_000),
    ("1G", "1G", 10**12, 10**9),
    ("3T", "3T", 3 * 10**15, 3 * 10**12),
    ("2P", "2P", 2 * 10**18, 2 * 10**15),
    ("1E", "1E", INT64_MAX, 10**18),
    ("9E", "9E", INT64_MAX, 9 * 10**18),
    ("1000E", "1000E", INT64_MAX, INT64_MAX),
    ("1Ki", "1Ki", 1_024_000, 1024),
    ("1024Ki", "1Mi", 1_073_741_824 * 1000 // 1024, 2**20),
    ("1.5Gi", "1536Mi", 1_610_612_736_000, 1_610_612_736),
    ("0.5Ki", "512", 512_000, 512),
    ("1000Ki", "1000Ki", 1_024_000_000, 1_024_000),
    ("0.0001Ki", "102400u", 103, 1),
    ("1.5Ki", "1536", 1_536_000, 1536),
    ("10Ei", "9223372036854775807", INT64_MAX, INT64_MAX),
    ("-2Gi", "-2Gi", -2_147_483_648_000, -(2**31)),
    ("12e6", "12e6", 12_000_000_000, 12_000_000),
    ("12E6", "12e6", 12_000_000_000, 12_000_000),
    ("1e0", "1", 1000, 1),
    ("1e-3", "1e-3", 1, 1),
    ("1.25e1", "12500e-3", 12_500, 13),
    ("1e3", "1e3", 1_000_000, 1000),
]


@pytest.mark.parametrize(("written", "canonical", "milli", "units"), CANONICAL)
def test_written_forms(written: str, canonical: str, milli: int, units: int) -> None:
    quantity = parse_quantity(written)
    assert (str(quantity), quantity.milli, quantity.units) == (canonical, milli, units)


@pytest.mark.parametrize(
    "written",
    [
        "",
        ".",
        "+",
        "-",
        " 1",
        "1 ",
        "1,5",
        "1Kb",
        "1kI",
        "ki",
        "m",
        "1e",
        "1e+",
        "1.2.3",
        "--1",
        "0x10",
        "1_000",
        *("1e65", "1e-65", "1e999999999999", "١", "1" * 65, "NaN", "inf", "1K", "1KiB"),
    ],
)
def test_other_text_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(QuantityError, match=r"quantity|exponent"):
        parse_quantity(written)


@pytest.mark.parametrize("value", [None, True, [], {}, float("nan"), float("inf")])
def test_other_json_is_refused(value: object) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(value)


@pytest.mark.parametrize(("value", "expected"), [(3, 3000), (0.5, 500), (1e-9, 1), (2.0, 2000)])
def test_bare_numbers_are_read(value: float, expected: int) -> None:
    assert parse_quantity(value).milli == expected


@pytest.mark.parametrize(
    ("resource", "written", "expected", "text"),
    [
        ("cpu", "1.5", 1500, "1500m"),
        ("cpu", "100.1m", 101, "101m"),
        ("cpu", 4, 4000, "4"),
        ("memory", "1Ki", 1024, "1024"),
        ("memory", "1.0001", 2, "2"),
        ("kubernetes.io/batch-cpu", "1k", 1000, "1k"),
        ("nvidia.com/gpu", 2, 2, "2"),
    ],
)
def test_amounts_count_cpu_in_millicores(resource: str, written: object, expected: int, text: str) -> None:
    assert amount(resource, written) == expected
    assert amount_text(resource, expected) == text


SUFFIXES = {
    suffix: Decimal(value)
    for suffix, value in (("m", "0.001"), ("k", "1e3"), ("G", "1e9"), ("", 1), ("Ki", 2**10), ("Gi", 2**30))
}


@given(
    st.decimals(min_value=0, max_value=10**6, places=4),
    st.sampled_from(sorted(SUFFIXES)),
    st.booleans(),
)
def test_value_is_the_decimal_product_rounded_away_from_zero(
    number: Decimal, suffix: str, negative: bool
) -> None:
    quantity = parse_quantity(f"{'-' if negative else ''}{number:f}{suffix}")
    exact = number * SUFFIXES[suffix] * (-1 if negative else 1)
    assert quantity.units == int(exact.to_integral_value(ROUND_UP))
    assert quantity.milli == int((exact * 1000).to_integral_value(ROUND_UP))


@given(st.integers(-(10**30), 10**30), st.sampled_from(Notation))
def test_canonical_text_reads_as_the_same_value_and_is_stable(nanos: int, notation: Notation) -> None:
    if notation is Notation.BINARY:
        nanos = max(-INT64_MAX * 10**9, min(nanos, INT64_MAX * 10**9))
    text = str(Quantity(nanos, notation))
    again = parse_quantity(text)
    assert again.nanos == nanos
    assert str(again) == text


@given(st.integers(INT64_MIN, INT64_MAX))
def test_whole_amounts_survive_text(value: int) -> None:
    assert amount("memory", amount_text("memory", value)) == value


@given(st.text(max_size=20))
def test_any_text_gives_a_value_or_a_clear_error(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    assert INT64_MIN <= quantity.units <= INT64_MAX
