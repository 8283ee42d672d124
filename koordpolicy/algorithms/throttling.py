"""How often a group was held back by its quota."""

from typing import NamedTuple


class Periods(NamedTuple):
    """What cpu.stat counts: periods that have passed, and those in which the group was held back."""

    passed: int
    throttled: int


def throttled_ratio(before: Periods, after: Periods) -> float:
    """The share of periods between two readings in which the group was held back; 0 when none has passed."""
    passed = after.passed - before.passed
    return (after.throttled - before.throttled) / passed if passed > 0 else 0.0
