"""How all nodes stand for one kind of pods: who is feasible, and the total of each, kept up to date row by row.

A pod that takes a node changes that node's row alone, and with it seldom what normalisations look at: then a
decision on the next equal pod costs a few entries and one search for the greatest total.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from koordpolicy.mechanism.columns import Mask
from koordpolicy.mechanism.normalize import Extremes, Scores, extremes, scaled
from koordpolicy.scheduler.cycle import Judged, Question
from koordpolicy.scheduler.nodes import Rows

Totals = NDArray[np.float64]


@dataclass(slots=True)
class _Part:
    """One score: how it is normalised, its weight, and its share in the totals, for infeasible nodes too."""

    at: int
    how: str
    weight: int
    between: Extremes
    share: Scores


class Standing:
    """The nodes by what was judged of them. `feasible` is None while every node is.

    `totals` have minus infinity where a node is not feasible.
    """

    __slots__ = ("_parts", "count", "feasible", "totals")

    def __init__(self, question: Question, judged: Judged, nodes: int) -> None:
        self.feasible = _feasible(judged)
        self.count = nodes if self.feasible is None else int(np.count_nonzero(self.feasible))
        self._parts: list[_Part] = []
        self.totals: Totals = np.zeros(nodes)
        if not self.count:
            self.totals.fill(-np.inf)
            return
        for at, (step, scores, weight) in enumerate(
            zip(question.profile.scores, judged.scores, judged.weights, strict=True)
        ):
            if scores is not None and weight:
                between = extremes(step.normalize, self._among(scores))
                share = _weighted(scaled(step.normalize, scores, between), weight)
                self._parts.append(_Part(at, step.normalize, weight, between, share))
                self.totals += share
        if self.feasible is not None:
            self.totals[~self.feasible] = -np.inf

    @staticmethod
    def can(question: Question, judged: Judged) -> bool:
        """Whether totals follow from what was judged alone: no node is promised, no score ranks the feasible."""
        return judged.barred is None and all(
            step.mechanism is None or step.mechanism.rank is None or f"score:{step.name}" not in judged.stamps
            for step in question.profile.scores
        )

    def refresh(self, judged: Judged, rows: Rows, before: Sequence[Scores | None]) -> bool:
        """Follow what was judged anew of some rows; `before` are their scores until then, in order.

        False when it is better to begin anew: what was feasible has become scarce, or the other way round.
        """
        if not self.count:
            return False
        fresh = _feasible(judged, rows)
        were = np.ones(len(rows), np.bool_) if self.feasible is None else self.feasible[rows].copy()
        self._admit(rows, fresh, were)
        if not self.count:
            return False
        now = np.ones(len(rows), np.bool_) if fresh is None else fresh
        moved = False
        for part in self._parts:
            scores, old = judged.scores[part.at], before[part.at]
            if scores is None or old is None:
                return False
            news = scores[rows]
            if part.between is not None and _reaches(part.between, old[were], news[now]):
                between = extremes(part.how, self._among(scores))
                if between != part.between:
                    part.between, moved = between, True
                    part.share = _weighted(scaled(part.how, scores, between), part.weight)
                    continue
            part.share[rows] = _weighted(scaled(part.how, news, part.between), part.weight)
        if moved:
            self.totals = np.sum([part.share for part in self._parts], axis=0, dtype=np.float64)
            if self.feasible is not None:
                self.totals[~self.feasible] = -np.inf
        else:
            sums = np.sum([part.share[rows] for part in self._parts], axis=0, dtype=np.float64)
            self.totals[rows] = np.where(now, sums, -np.inf)
        return True

    def _admit(self, rows: Rows, fresh: Mask | None, were: Mask) -> None:
        """Take over which of the rows are feasible now."""
        if fresh is None:
            if self.feasible is not None:
                self.feasible[rows] = True
                self.count += int(np.count_nonzero(~were))
            return
        if self.feasible is None:
            self.feasible = np.ones(len(self.totals), np.bool_)
        self.feasible[rows] = fresh
        self.count += int(np.count_nonzero(fresh)) - int(np.count_nonzero(were))

    def best(self) -> Rows:
        """The nodes with the greatest total; there is at least one that is feasible."""
        return np.flatnonzero(self.totals == self.totals.max())

    def _among(self, scores: Scores) -> Scores:
        return scores if self.feasible is None else scores[self.feasible]


def _feasible(judged: Judged, rows: Rows | None = None) -> Mask | None:
    """The nodes that no filter refuses, or those of some rows; None when none is refused."""
    feasible: Mask | None = None
    for verdicts, accepted in zip(judged.verdicts, judged.accepted, strict=True):
        if verdicts is not None:
            refused = verdicts.refused if rows is None else verdicts.refused[:, rows]
            if refused.any():
                passes = np.logical_not(refused[0] if len(refused) == 1 else refused.any(axis=0))
                feasible = np.asarray(passes if feasible is None else feasible & passes, np.bool_)
        if accepted is not None:
            taken = accepted if rows is None else accepted[rows]
            if not taken.all():
                feasible = taken.copy() if feasible is None else feasible & taken
    return feasible


def _weighted(scores: Scores, weight: int) -> Scores:
    """The scores times their weight, in an array of its own."""
    return scores * weight if weight != 1 else scores.copy()


def _reaches(between: Extremes, old: Scores, news: Scores) -> bool:
    """Whether the extremes may be others now: one of them is given up, or a new score lies at or beyond it."""
    assert between is not None
    least, most = between
    return bool(
        (len(old) and (old.min() <= least or old.max() >= most))
        or (len(news) and (news.min() < least or news.max() > most))
    )
