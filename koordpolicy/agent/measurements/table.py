"""Measurements of many subjects over a while: a ring of moments, in which each round of a collector has its place.

Arrays of numbers of the standard library: an agent imports nothing larger for what it adds to them in a second.
"""

from array import array
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Final, Generic, TypeVar

from koordpolicy.algorithms.aggregation import aggregate, percentile

Subject = TypeVar("Subject", bound=Hashable)
_N = TypeVar("_N", int, float)

MOST_MOMENTS: Final = 3600
"""Places of a ring. Where a window has more rounds, one takes the place of the one before, so that they are spread."""
_FEWEST_ROWS: Final = 4
_NEVER: Final = -(2**63)
_NUMBER: Final = 8
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back a table goes, and how often it is added to; nanoseconds, the window at least one interval."""

    window: int
    interval: int

    def __post_init__(self) -> None:
        if not 0 < self.interval <= self.window:
            raise ValueError(f"an interval of {self.interval} ns in a window of {self.window} ns")

    @property
    def moments(self) -> int:
        """Places that hold the window, both of its ends included."""
        return min(-(-self.window // self.interval) + 1, MOST_MOMENTS)

    @property
    def spacing(self) -> int:
        """Nanoseconds between two moments at least. Where every round has a place it is less than an interval, as rounds
        are late at times.
        """
        apart = self.interval if self.moments < MOST_MOMENTS else self.window // (MOST_MOMENTS - 1)
        return apart - self.interval // 4


@dataclass(frozen=True, slots=True, eq=False)
class Excerpt(Generic[Subject]):
    """One measure of all subjects in a window: for each a value a moment, NaN where it was not measured.

    `times` are the moments, ascending, in nanoseconds of the clock that the table was fed with.
    """

    times: Sequence[int]
    values: Mapping[Subject, Sequence[float]]

    def aggregate(self, name: str) -> dict[Subject, float]:
        """The average (`avg`) or a percentile (`p50`, `p90`, `p95`, `p99`) of each subject that was measured."""
        return {subject: aggregate(found, name) for subject, found in self._measured()}

    def percentile(self, share: float) -> dict[Subject, float]:
        """The value at a share (0.9 for 90 percent) of each subject that was measured."""
        return {subject: percentile(found, share) for subject, found in self._measured()}

    def latest(self) -> dict[Subject, float]:
        """The last value of each subject that was measured."""
        found = {}
        for subject, values in self.values.items():
            for value in reversed(values):
                if value == value:
                    found[subject] = value
                    break
        return found

    def counts(self) -> dict[Subject, int]:
        """How often each subject was measured."""
        return {subject: len(_numbers(values)) for subject, values in self.values.items()}

    def spans(self) -> dict[Subject, int]:
        """Nanoseconds from the first to the last measurement of each subject; 0 where there is none."""
        found = {}
        for subject, values in self.values.items():
            times = [at for at, value in zip(self.times, values, strict=True) if value == value]
            found[subject] = times[-1] - times[0] if times else 0
        return found

    def _measured(self) -> list[tuple[Subject, list[float]]]:
        """The values of each subject that has any."""
        found = ((subject, _numbers(values)) for subject, values in self.values.items())
        return [(subject, numbers) for subject, numbers in found if numbers]


def _numbers(values: Sequence[float]) -> list[float]:
    return [value for value in values if value == value]


@dataclass(slots=True)
class _Row:
    """The rings of one subject, one a measure, and when it was measured last."""

    rings: "tuple[array[float], ...]"
    seen: int


class MeasurementTable(Generic[Subject]):
    """Measurements of subjects of one level. Memory: 8 bytes x measures x subjects x moments, of `most` subjects at most.

    A subject has a row from its first measurement until a whole window has passed since its last, and somebody needs its
    place.
    """

    def __init__(self, measures: Sequence[str], reach: Reach, most: int) -> None:
        self.measures = tuple(measures)
        self.reach = reach
        self.refused = 0
        """Measurements of subjects for which there was no row."""
        self._most = most
        self._full = min(_FEWEST_ROWS, most)
        """Rows from which on is looked for those of subjects that are gone."""
        self._rows: dict[Subject, _Row] = {}
        self._times = array("q", [_NEVER]) * reach.moments
        self._nothing = array("d", [nan]) * reach.moments
        self._at = -1
        self._before = _NEVER
        """The moment before the present place's."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """What all numbers take, in bytes."""
        return _NUMBER * len(self._times) * (2 + len(self._rows) * len(self.measures))

    def add(self, now: int, found: Mapping[Subject, Sequence[float]]) -> None:
        """Take one round: for each subject a value a measure, NaN where it was not measured.

        `now` is in nanoseconds; a round that is not after the one before is left out, as its clock was set back.
        """
        last = self._times[self._at] if self._at >= 0 else _NEVER
        if now <= last:
            return
        if last - self._before >= self.reach.spacing or self._before == _NEVER:
            self._at = (self._at + 1) % len(self._times)
            self._before = last
        at = self._at
        self._times[at] = now
        measured, rows = 0, self._rows
        for subject, values in found.items():
            known = rows.get(subject) or self._new(subject, now)
            if known is None:
                self.refused += 1
                continue
            known.seen = now
            measured += 1
            for ring, value in zip(known.rings, values, strict=True):
                ring[at] = value
        if measured < len(rows):
            for row in rows.values():
                if row.seen != now:
                    for ring in row.rings:
                        ring[at] = nan

    def excerpt(self, measure: str, now: int, duration: int) -> Excerpt[Subject]:
        """One measure of all subjects over [now - duration, now], both ends included. ValueError for another measure."""
        number = self.measures.index(measure)
        begin, end = self._within(now, duration)
        return Excerpt(
            self._cut(self._times, begin, end),
            {subject: self._cut(row.rings[number], begin, end) for subject, row in self._rows.items()},
        )

    def latest(self, measure: str, now: int, duration: int) -> dict[Subject, float]:
        """The last value of each subject that was measured within a duration."""
        number = self.measures.index(measure)
        begin, end = self._within(now, duration)
        places = [self._at - back for back in range(end, begin)]
        found = {}
        for subject, row in self._rows.items():
            ring = row.rings[number]
            for place in places:
                value = ring[place]
                if value == value:
                    found[subject] = value
                    break
        return found

    def reaching(self, reach: Reach) -> "MeasurementTable[Subject]":
        """A table of another reach with the moments of this one that fit; this one where it is the same."""
        if reach == self.reach:
            return self
        other: MeasurementTable[Subject] = MeasurementTable(self.measures, reach, self._most)
        size = len(self._times)
        for at in ((self._at + 1 + step) % size for step in range(size)):
            if self._times[at] != _NEVER:
                values = {subject: [ring[at] for ring in row.rings] for subject, row in self._rows.items()}
                measured = {subject: found for subject, found in values.items() if _numbers(found)}
                other.add(self._times[at], measured)
        other.refused = self.refused
        return other

    def _within(self, now: int, duration: int) -> tuple[int, int]:
        """How many places back from the present one the moments of a window begin, the present one being 1, and end."""
        first = max(now - duration, _NEVER + 1)
        end = begin = 0
        size = len(self._times)
        while end < size and self._times[self._at - end] > now:
            end += 1
        begin = end
        while begin < size and self._times[self._at - begin] >= first:
            begin += 1
        return begin, end

    def _cut(self, ring: "array[_N]", begin: int, end: int) -> "array[_N]":
        """What stands in those places, the oldest first."""
        start, stop = self._at + 1 - begin, self._at + 1 - end
        if start >= 0:
            return ring[start:stop]
        return ring[start:] + ring[:stop] if stop > 0 else ring[start : stop or None]

    def _new(self, subject: Subject, now: int) -> _Row | None:
        """A row for a subject that has none; None where there are no more."""
        if len(self._rows) >= self._full:
            gone = [one for one, row in self._rows.items() if row.seen < now - self.reach.window]
            for one in gone:
                del self._rows[one]
            if len(self._rows) >= self._most:
                return None
            self._full = min(max(2 * len(self._rows), _FEWEST_ROWS), self._most)
        row = self._rows[subject] = _Row(tuple(self._nothing[:] for _ in self.measures), now)
        return row
