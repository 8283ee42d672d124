"""How all nodes stand for one kind of pods: who is feasible, and the total of each.

The totals are kept: a pod that takes a node changes that node's row alone, and with it seldom what
normalisations look at. Then the next equal pod costs a few entries and one search for the greatest total.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.normalize import Extremes, Scores, extremes, scaled, scaled_one
from koordpolicy.cluster.nodes import Rows
from koordpolicy.scheduler.cycle import Cycle, Evaluation

Totals = NDArray[np.float64]


@dataclass(slots=True)
class Part:
    """One score of those that count: its place, how it is normalised, its weight."""

    at: int
    how: str
    weight: int
    between: Extremes

    def shares(self, scores: Scores) -> "Scores | float":
        """What it adds to the totals, of all nodes: one number where their scores are the same array entry."""
        if scores.strides == (0,):
            return self.share(scores[0].item())
        found = scaled(self.how, scores, self.between)
        return found * self.weight if self.weight != 1 else found

    def share(self, score: float) -> float:
        """What it adds to the total of one node."""
        return float(scaled_one(self.how, score, self.between) * self.weight)

    def moves_with(self, score: float) -> bool:
        """Whether the extremes may be others once a node with this score comes or goes, beside others."""
        if self.between is None:
            return False
        least, most = self.between
        if self.how.endswith("Maximum"):
            return bool(0 < score >= most)
        return not (least < score < most or least == score == most)


class Standing:
    """The nodes by what was evaluation of them. `feasible` is None while every node is.

    `totals` have minus infinity where a node is not feasible.
    """

    __slots__ = ("_parts", "count", "feasible", "totals")

    def __init__(self, cycle: Cycle, evaluation: Evaluation, nodes: int) -> None:
        self.feasible = _feasible(evaluation)
        self.count = nodes if self.feasible is None else int(np.count_nonzero(self.feasible))
        self._parts: list[Part] = []
        totals = self._added(cycle, evaluation) if self.count else -np.inf
        self.totals: Totals = np.full(nodes, totals) if isinstance(totals, float) else totals
        if self.count and self.feasible is not None:
            self.totals[~self.feasible] = -np.inf

    def _added(self, cycle: Cycle, evaluation: Evaluation) -> Totals | float:
        """The totals in an array of their own, or one for all nodes.

        They are added up in the order of the scores: in another one, doubles could differ.
        """
        totals: Totals | float = 0.0
        for at, (step, scores, weight) in enumerate(
            zip(cycle.profile.scores, evaluation.scores, evaluation.weights, strict=True)
        ):
            if scores is not None and weight:
                part = Part(at, step.normalize, weight, extremes(step.normalize, self._among(scores)))
                self._parts.append(part)
                shares = part.shares(scores)
                if isinstance(totals, float):
                    totals = totals + shares
                elif not isinstance(shares, float) or shares:
                    totals += shares
        return totals

    @staticmethod
    def can(cycle: Cycle, evaluation: Evaluation) -> bool:
        """Whether totals follow from what was evaluation alone: no node is promised, no score ranks the feasible."""
        return evaluation.barred is None and not any(
            step.plugin is not None and step.plugin.rank is not None and step.place in evaluation.cache_keys
            for step in (cycle.profile.scores if evaluation.cache_keys else ())
        )

    def follow(self, evaluation: Evaluation, row: int, *, passes: bool) -> bool:
        """Take over what was evaluation anew of a node; false when all has to begin anew."""
        if not self.count:
            return False  # nothing was added up while no node was feasible
        passed = self.feasible is None or bool(self.feasible[row])
        if passed != passes:
            if self.feasible is None:
                self.feasible = np.ones(len(self.totals), np.bool_)
            self.feasible[row] = passes
            self.count += 1 if passes else -1
            # What normalisations look at are the feasible nodes.
            if not self.count or any(
                part.moves_with(_scores_of(evaluation, part.at).item(row)) for part in self._parts
            ):
                return False
        if not passes:
            self.totals[row] = -np.inf
            return True
        total = 0.0
        for part in self._parts:
            score = _scores_of(evaluation, part.at).item(row)
            total += score * part.weight if part.between is None else part.share(score)
        self.totals[row] = total
        return True

    def best(self) -> "Rows | int":
        """The nodes with the greatest total, or the only one; there is at least one that is feasible."""
        totals = self.totals
        first = int(totals.argmax())
        equal = totals == totals[first]
        return first if np.count_nonzero(equal) == 1 else equal.nonzero()[0]

    def _among(self, scores: Scores) -> Scores:
        if scores.strides == (0,):
            return scores[:1]
        return scores if self.feasible is None else scores[self.feasible]


def _scores_of(evaluation: Evaluation, at: int) -> Scores:
    scores = evaluation.scores[at]
    assert scores is not None
    return scores


def _feasible(evaluation: Evaluation) -> Mask | None:
    """The nodes that no filter refuses; None when none is refused."""
    feasible: Mask | None = None
    for verdicts, accepted in zip(evaluation.verdicts, evaluation.accepted, strict=True):
        if verdicts is not None and not verdicts.none and np.count_nonzero(verdicts.refused):
            refused = verdicts.refused
            passes = np.logical_not(refused[0] if len(refused) == 1 else refused.any(axis=0))
            feasible = np.asarray(passes if feasible is None else feasible & passes, np.bool_)
        if accepted is not None and np.count_nonzero(accepted) < len(accepted):
            feasible = accepted.copy() if feasible is None else feasible & accepted
    return feasible
