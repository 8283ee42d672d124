"""What is expected where no type tells how it is meant."""

import pytest

from koordpolicy.graph.testing.compare import Tolerance, agrees
from koordpolicy.language.cel.values import Duration, Timestamp

MINUTE = Duration(60 * 10**9)
BEGIN = Timestamp(0)


@pytest.mark.parametrize(
    ("wanted", "actual", "same"),
    [
        ([0, "1m"], [0, MINUTE], True),
        ([0, "2m"], [0, MINUTE], False),
        (["1970-01-01T00:00:00Z"], [BEGIN], True),
        (["1970-01-01T00:00:01Z"], [BEGIN], False),
        (["soon"], [BEGIN], False),
        (["1m"], ["1m"], True),
        ([MINUTE], ["1m"], False),
    ],
)
def test_times_in_a_list_of_anything(wanted: list[object], actual: list[object], same: bool) -> None:
    assert agrees(wanted, actual) is same


def test_a_tolerance_holds_for_them_too() -> None:
    assert agrees(["61s"], [MINUTE], Tolerance(amount=10**9))
