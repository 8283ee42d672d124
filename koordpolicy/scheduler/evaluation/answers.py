"""What one filter or one score says of the nodes that it was asked about."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.nodes import Rows
from koordpolicy.scheduler.plugins import Verdicts
from koordpolicy.scheduler.step import Step


@dataclass(slots=True, eq=False)
class Filtered:
    """Of a filter: the verdicts of its plugin and what its expression accepts, None of a part that was not asked.

    With `failed` the expression may have failed on some nodes, which it refuses then.
    """

    step: Step
    verdicts: Verdicts | None = None
    accepted: Mask | None = None
    failed: bool = False

    def passing(self) -> Mask | None:
        """The nodes that it lets pass, in an array of its own; None where it refuses none."""
        passes: Mask | None = None
        verdicts, accepted = self.verdicts, self.accepted
        if verdicts is not None and not verdicts.none and np.count_nonzero(verdicts.refused):
            refused = verdicts.refused
            passes = np.logical_not(refused[0] if len(refused) == 1 else refused.any(axis=0))
        if accepted is not None and np.count_nonzero(accepted) < len(accepted):
            passes = accepted.copy() if passes is None else np.asarray(passes & accepted, np.bool_)
        return passes

    def owned(self) -> "Filtered":
        """With arrays of its own to write: those that it was given may be views of the table, which others read. One that
        says nothing is everybody's.
        """
        if self.verdicts is None and self.accepted is None:
            return Filtered(self.step)
        self.verdicts, self.accepted = _written(self.verdicts), _copied(self.accepted)
        return self

    def overlay(self, news: "Filtered", rows: Rows, *, whole: bool) -> bool:
        """Take over what is said of some rows now, the plugin's part of all nodes if `whole`; false if they differ in kind."""
        if news is self:
            return True
        self.failed |= news.failed
        if whole:
            self.verdicts = _written(news.verdicts)
        elif (self.verdicts is None) != (news.verdicts is None):
            return False
        elif self.verdicts is not None and news.verdicts is not None:
            if self.verdicts.reasons != news.verdicts.reasons:
                return False
            self.verdicts.refused[:, rows] = news.verdicts.refused
            self.verdicts.unresolvable[rows] = news.verdicts.unresolvable
        return _overlaid(self.accepted, news.accepted, rows)


@dataclass(slots=True, eq=False)
class Scored:
    """Of a score: the scores before they are normalised, and its weight; None and 0 of one that takes no part. Its expression
    `failed` on these nodes, and counts 0 there (None: on no node).
    """

    step: Step
    scores: Scores | None = None
    weight: int = 0
    failed: Mask | None = None

    def owned(self) -> "Scored":
        """With arrays of its own to write; as of filters, one that says nothing is everybody's."""
        if not self.weight:
            return Scored(self.step)
        self.scores, self.failed = _copied(self.scores), _copied(self.failed)
        return self

    def note(self, row: int, *, failed: bool) -> None:
        """Whether its expression fails on a node now."""
        if self.failed is None:
            if not failed or self.scores is None:
                return
            self.failed = np.zeros(len(self.scores), np.bool_)
        self.failed[row] = failed

    def overlay(self, news: "Scored", rows: Rows, *, whole: bool) -> bool:
        """Take over what is said of some rows now, or of all nodes if `whole`; false if they differ in kind."""
        if news is self:
            return True
        if whole:
            self.scores = _copied(news.scores)
        if self.failed is not None or news.failed is not None:
            if self.failed is None:
                self.failed = np.zeros(0 if self.scores is None else len(self.scores), np.bool_)
            self.failed[rows] = False if news.failed is None else news.failed
        return self.weight == news.weight and (whole or _overlaid(self.scores, news.scores, rows))


def _written(verdicts: Verdicts | None) -> Verdicts | None:
    return verdicts and Verdicts(verdicts.reasons, verdicts.refused.copy(), verdicts.unresolvable.copy())


def _copied(array: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if array is None else array.copy()


def _overlaid(known: NDArray[Any] | None, news: NDArray[Any] | None, rows: Rows) -> bool:
    if known is not None and news is not None:
        known[rows] = news
    return (known is None) == (news is None)
