"""Which values of its type a place takes: choices, ranges, patterns. Looked at while compiling where a value is known,
and by an `ir.Cast` where only run time can tell.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import inf

from koordpolicy.language.cel.values import Duration, Value


@dataclass(frozen=True, slots=True)
class Permitted:
    """Values that a place takes, beyond their type; of a list or map each element.

    `choices` are the texts there may be, none meaning any, `pattern` is one that a text matches. Numbers lie between `low` and
    `high` in the units of their type, durations in nanoseconds; without `low_fits` the lower bound is outside.
    `words` complete the sentence "write ...".
    """

    words: str
    choices: tuple[str, ...] = ()
    low: float = -inf
    high: float = inf
    low_fits: bool = True
    pattern: str = ""

    def admits(self, value: Value) -> bool:
        """Whether the place takes a value of its type."""
        return all(map(self._admits, elements(value)))

    def _admits(self, value: Value) -> bool:
        if isinstance(value, str):
            return (not self.choices or value in self.choices) and (
                not self.pattern or _compiled(self.pattern).search(value) is not None
            )
        number = value.ns if isinstance(value, Duration) else value
        return not isinstance(number, int | float) or self.holds(number, number)

    def holds(self, low: float, high: float) -> bool:
        """Whether it takes all numbers between two."""
        above = low >= self.low if self.low_fits else low > self.low
        return above and high <= self.high

    def excludes(self, low: float, high: float) -> bool:
        """Whether it takes no number between two."""
        below = high < self.low if self.low_fits else high <= self.low
        return below or low > self.high


def elements(value: Value) -> Iterable[Value]:
    """The elements of a list, the values of a map, else the value itself."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else (value,)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
