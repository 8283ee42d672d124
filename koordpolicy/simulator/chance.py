"""Chance as an argument: whoever starts a simulation brings its source, seeded."""

from typing import Any, Protocol


class Chance(Protocol):
    """What a simulation asks of a source of random numbers; NumPy's generators give it."""

    def normal(self, loc: float, scale: Any, size: int | None = None) -> Any:
        """Normal deviates, one or `size` of them."""

    def random(self) -> float:
        """A number from 0 to below 1."""

    def integers(self, low: int, high: int) -> Any:
        """A whole number from `low` to below `high`."""
