"""The values that one fact may still have, given what the conditions of rules demand of it."""

from dataclasses import dataclass, field, replace
from math import inf

Scalar = int | float | str | bool


@dataclass(frozen=True, slots=True)
class Domain:
    """A set of values: a finite choice, or an interval, less some exclusions.

    `present` is True when the fact must exist, False when it must not, None when either will do.
    `choices` None means any value. Interval bounds apply to numbers only.
    """

    present: bool | None = None
    choices: frozenset[Scalar] | None = None
    excluded: frozenset[Scalar] = field(default_factory=frozenset)
    low: float = -inf
    high: float = inf
    low_open: bool = False
    high_open: bool = False

    def meet(self, other: "Domain") -> "Domain | None":
        """The values in both, or None when there is none."""
        if self.present is not None and other.present is not None and self.present != other.present:
            return None
        present = self.present if self.present is not None else other.present
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, high_shut = min((self.high, not self.high_open), (other.high, not other.high_open))
        choices = self.choices
        if other.choices is not None:
            choices = other.choices if choices is None else choices & other.choices
        met = Domain(present, choices, self.excluded | other.excluded, low, high, low_open, not high_shut)
        return None if met.is_empty else met

    @property
    def is_empty(self) -> bool:
        if self.present is False:
            return self.choices is not None
        if self.choices is not None:
            return not any(self._admits(value) for value in self.choices)
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))

    def _admits(self, value: Scalar) -> bool:
        if value in self.excluded:
            return False
        if isinstance(value, bool | str):
            return True
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def sample(self, whole: bool) -> Scalar | None:
        """One value of the set, as simple as can be; None when none is found.

        `whole` asks for an int rather than a float.
        """
        if self.choices is not None:
            fitting = [value for value in self.choices if self._admits(value)]
            return min(fitting, key=lambda value: (str(type(value)), str(value)), default=None)
        number = int if whole else float
        for candidate in self._candidates():
            if abs(candidate) != inf and self._admits(number(candidate)):
                return number(candidate)
        return None

    def _candidates(self) -> list[float]:
        middle = (self.low + self.high) / 2 if self.low != -inf and self.high != inf else 0.0
        steps = [0.0, self.low, self.high, middle]
        steps += [self.low + step for step in (1, 2, 3, 1000)]
        steps += [self.high - step for step in (1, 2, 3, 1000)]
        return [step for step in steps if step == step]

    def without(self, value: Scalar) -> "Domain":
        """The same set less one value."""
        return replace(self, excluded=self.excluded | {value})


PRESENT = Domain(present=True)
ABSENT = Domain(present=False)
NOTHING = Domain(present=True, choices=frozenset())
"""No value at all."""


def one_of(values: frozenset[Scalar]) -> Domain:
    """Any of the values, which must be there."""
    return Domain(present=True, choices=values)


def between(low: float, high: float, *, low_open: bool = False, high_open: bool = False) -> Domain:
    """A number between two bounds, which must be there."""
    return Domain(present=True, low=low, high=high, low_open=low_open, high_open=high_open)
