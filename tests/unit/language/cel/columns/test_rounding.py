"""Halves away from zero, for every double: columns, rows and the definition agree to the last bit."""

import math
import struct
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.language.cel.lower.columns import ColumnProgram
from tests.unit.language.cel.columns.support import NOW, columns, table_of

BELOW_HALF = math.nextafter(0.5, 0.0)
EDGES = [
    0.0, 0.5, BELOW_HALF, math.nextafter(0.5, 1.0), 1.5, 2.5, math.nextafter(2.5, 0.0), 5e-324, 2.0**51 + 0.5,
    2.0**52 - 0.5, 2.0**52 + 1, 2.0**53 - 1, 2.0**53 + 2, 1e300, math.inf,
]  # fmt: skip
DOUBLES = st.one_of(
    st.floats(), st.integers(-(2**53), 2**53).map(lambda whole: whole / 2), st.sampled_from(EDGES)
)
ROUND = columns("math.round(double(node.usageThresholds.usage['x']))")


def _bits(value: float) -> bytes:
    return struct.pack("<d", math.nan if value != value else value)


def _defined(value: float) -> float:
    if not math.isfinite(value):
        return value
    with_sign = Decimal(value).quantize(Decimal(1), ROUND_HALF_UP) if abs(value) < 2.0**53 else value
    return math.copysign(float(with_sign), value)


def _check(program: ColumnProgram, values: list[float]) -> None:
    table = table_of([{"usageThresholds.usage": {"x": value}} for value in values])
    roots: dict[str, Any] = {"pod": {}, "now": NOW}
    together = program.call(table, roots)
    assert together.errors is None
    bound = program.bound(roots)
    for at, value in enumerate(values):
        expected = _bits(_defined(value))
        assert _bits(together.values[at].item()) == expected, value
        (answer,) = bound.ask(table.row(at))
        assert isinstance(answer, float) and _bits(answer) == expected, value


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("value", EDGES)
def test_edges(value: float, sign: float) -> None:
    _check(ROUND, [value * sign])


@settings(deadline=None)
@given(st.lists(DOUBLES, min_size=1, max_size=8))
def test_any_doubles(values: list[float]) -> None:
    _check(ROUND, values)


@settings(deadline=None)
@given(st.lists(DOUBLES.map(abs), min_size=1, max_size=8))
def test_doubles_that_are_not_negative(values: list[float]) -> None:
    _check(ROUND, values)


def test_a_nan_stays() -> None:
    _check(ROUND, [math.nan, 1.5])
