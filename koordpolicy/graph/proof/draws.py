"""Draws that follow from a seed alone: the same question draws the same inputs, under every Python."""

import math
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_WORD: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15


class Draws:
    """A generator of numbers by SplitMix64."""

    __slots__ = ("_state",)

    def __init__(self, seed: bytes) -> None:
        self._state = int.from_bytes(seed[:8], "big")

    def _word(self) -> int:
        self._state = (self._state + _STEP) & _WORD
        word = self._state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
        return word ^ (word >> 31)

    def below(self, bound: int) -> int:
        """A whole number from 0 up to `bound`, which it does not reach; the bias of small bounds is nothing here."""
        return self._word() % bound

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` up to `high`, which it does not reach."""
        return low + self.below(high - low)

    def share(self) -> float:
        """A number from 0 up to 1, which it does not reach."""
        return (self._word() >> 11) / (1 << 53)

    def within(self, low: float, high: float) -> float:
        """A number between two."""
        return low + (high - low) * self.share()

    def magnitude(self, digits: float) -> int:
        """A whole number of up to so many digits, of each number of digits as often."""
        return int(math.pow(10, self.within(0, digits)))

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """So many of the items, each once."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]
