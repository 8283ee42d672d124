"""Measurements of many subjects over a while: a ring of moments, in which each round of a collector is a column."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.aggregation import Floats, aggregate, counts, latest, percentiles, spans

Subject = TypeVar("Subject", bound=Hashable)

MOST_MOMENTS: Final = 3600
"""Columns of a ring. Where a window has more rounds, one takes the place of the one before, so that they are spread."""
_FEWEST_ROWS: Final = 4
_NEVER: Final = -(2**63)


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
        """Columns that hold the window, both of its ends included."""
        return min(-(-self.window // self.interval) + 1, MOST_MOMENTS)

    @property
    def spacing(self) -> int:
        """Nanoseconds between two moments at least. Where every round has a column it is less than an interval, as rounds
        are late at times.
        """
        apart = self.interval if self.moments < MOST_MOMENTS else self.window // (MOST_MOMENTS - 1)
        return apart - self.interval // 4


@dataclass(frozen=True, slots=True, eq=False)
class Excerpt(Generic[Subject]):
    """One measure of all subjects in a window. `values` has a row a subject and a column a moment; NaN is no measurement.

    `times` are the moments, ascending, in nanoseconds of the clock that the table was fed with.
    """

    rows: Mapping[Subject, int]
    times: NDArray[np.int64]
    values: Floats

    def aggregate(self, name: str) -> dict[Subject, float]:
        """The average (`avg`) or a percentile (`p50`, `p90`, `p95`, `p99`) of each subject that was measured."""
        return self._known(aggregate(self.values, name))

    def percentile(self, share: float) -> dict[Subject, float]:
        """The value at a share (0.9 for 90 percent) of each subject that was measured."""
        return self._known(percentiles(self.values, share))

    def latest(self) -> dict[Subject, float]:
        """The last value of each subject that was measured."""
        return self._known(latest(self.values))

    def counts(self) -> dict[Subject, int]:
        """How often each subject was measured."""
        found = counts(self.values)
        return {subject: int(found[row]) for subject, row in self.rows.items()}

    def spans(self) -> dict[Subject, int]:
        """Nanoseconds from the first to the last measurement of each subject."""
        found = spans(self.values, self.times)
        return {subject: int(found[row]) for subject, row in self.rows.items()}

    def _known(self, found: Floats) -> dict[Subject, float]:
        return {subject: float(found[row]) for subject, row in self.rows.items() if not np.isnan(found[row])}


class MeasurementTable(Generic[Subject]):
    """Measurements of subjects of one level. Memory: 8 bytes x measures x rows x moments, and `most` rows at most.

    A subject has a row from its first measurement until a whole window has passed since its last.
    """

    def __init__(self, measures: Sequence[str], reach: Reach, most: int) -> None:
        self.measures = tuple(measures)
        self.reach = reach
        self.refused = 0
        """Measurements of subjects for which there was no row."""
        self._most = most
        self._rows: dict[Subject, int] = {}
        self._free: list[int] = []
        self._times = np.full(reach.moments, _NEVER, np.int64)
        self._values = np.full((len(self.measures), 0, reach.moments), np.nan)
        self._seen = np.full(0, _NEVER, np.int64)
        self._at = -1
        self._before = _NEVER
        """The moment before the present column's."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """What all values take, in bytes."""
        return self._values.nbytes + self._times.nbytes + self._seen.nbytes

    def add(self, now: int, found: Mapping[Subject, Sequence[float]]) -> None:
        """Take one round: for each subject a value a measure, NaN where it was not measured.

        `now` is in nanoseconds; a round that is not after the one before is left out, as its clock was set back.
        """
        last = int(self._times[self._at]) if self._at >= 0 else _NEVER
        if now <= last:
            return
        if last - self._before >= self.reach.spacing or self._before == _NEVER:
            self._at = (self._at + 1) % len(self._times)
            self._before = last
        self._times[self._at] = now
        self._values[:, :, self._at] = np.nan
        rows, columns = [], []
        for subject, values in found.items():
            row = self._row(subject, now)
            if row is None:
                self.refused += 1
            else:
                rows.append(row)
                columns.append(values)
        if rows:
            self._values[:, rows, self._at] = np.array(columns, np.float64).T
            self._seen[rows] = now

    def excerpt(self, measure: str, now: int, duration: int) -> Excerpt[Subject]:
        """One measure of all subjects over [now - duration, now], both ends included. ValueError for another measure."""
        values = self._values[self.measures.index(measure)]
        order = np.roll(np.arange(len(self._times)), -1 - self._at)
        times = self._times[order]
        within = (times >= max(now - duration, _NEVER + 1)) & (times <= now)
        return Excerpt(dict(self._rows), times[within], values[:, order[within]])

    def latest(self, measure: str, now: int, duration: int) -> dict[Subject, float]:
        """The last value of each subject that was measured within a duration."""
        return self.excerpt(measure, now, duration).latest()

    def reaching(self, reach: Reach) -> "MeasurementTable[Subject]":
        """A table of another reach with the moments of this one that fit; this one where it is the same."""
        if reach == self.reach:
            return self
        other: MeasurementTable[Subject] = MeasurementTable(self.measures, reach, self._most)
        for at in np.roll(np.arange(len(self._times)), -1 - self._at):
            if self._times[at] != _NEVER:
                columns = self._values[:, :, at]
                other.add(
                    int(self._times[at]),
                    {
                        subject: columns[:, row].tolist()
                        for subject, row in self._rows.items()
                        if not np.isnan(columns[:, row]).all()
                    },
                )
        other.refused = self.refused
        return other

    def _row(self, subject: Subject, now: int) -> int | None:
        row = self._rows.get(subject)
        if row is not None:
            return row
        if not self._free:
            self._make_room(now)
        if not self._free:
            return None
        row = self._rows[subject] = self._free.pop()
        self._values[:, row, :] = np.nan
        self._seen[row] = now  # its first values come with those of the round
        return row

    def _make_room(self, now: int) -> None:
        """Take back the rows of those that are gone; more rows where there are too few."""
        for subject, row in list(self._rows.items()):
            if self._seen[row] < now - self.reach.window:
                del self._rows[subject]
                self._free.append(row)
        had = self._values.shape[1]
        more = min(max(had, _FEWEST_ROWS), self._most - had)
        if len(self._free) * 4 >= had > 0 or more <= 0:
            return
        self._values = np.concatenate(
            (self._values, np.full((len(self.measures), more, len(self._times)), np.nan)), axis=1
        )
        self._seen = np.concatenate((self._seen, np.full(more, _NEVER, np.int64)))
        self._free.extend(range(had + more - 1, had - 1, -1))
