"""How all nodes rank for pods that are alike: who is feasible, and the total of each.

The totals are kept: a pod that takes a node changes that node's row alone, and with it seldom what
normalisations look at. Then the next equal pod costs a few entries and one search for the greatest total.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.normalize import Extremes, Scores, extremes, scaled, scaled_one
from koordpolicy.cluster.nodes import Rows
from koordpolicy.scheduler.evaluation.answers import Scored

Totals = NDArray[np.float64]


@dataclass(slots=True)
class _Part:
    """One score of those that count, and the extremes between which it is normalised."""

    scored: Scored
    between: Extremes

    def shares(self) -> "Scores | float":
        """What it adds to the totals, of all nodes: one number where their scores are the same array entry."""
        scores, weight = self._scores, self.scored.weight
        if scores.strides == (0,):
            return float(self.share(scores[0].item()))
        found = scaled(self.scored.step.normalize, scores, self.between)
        return found * weight if weight != 1 else found

    def share(self, score: float) -> float:
        """What it adds to the total of one node."""
        if self.between is None:
            return score * self.scored.weight
        return float(scaled_one(self.scored.step.normalize, score, self.between) * self.scored.weight)

    def of(self, row: int) -> float:
        """The score of one node."""
        return self._scores.item(row)  # type: ignore[no-any-return]  # a number, as all scores

    def moves_with(self, score: float) -> bool:
        """Whether the extremes may be others once a node with this score comes or goes, beside others."""
        if self.between is None:
            return False
        least, most = self.between
        if self.scored.step.normalize.endswith("Maximum"):
            return bool(0 < score >= most)
        return not (least < score < most or least == score == most)

    @property
    def _scores(self) -> Scores:
        assert self.scored.scores is not None
        return self.scored.scores


class Ranking:
    """`count` nodes are `feasible` (None: every node is); `totals` have minus infinity where a node is not."""

    __slots__ = ("_parts", "count", "feasible", "totals")

    def __init__(self, feasible: Mask | None, scores: Sequence[Scored], nodes: int) -> None:
        self.feasible = feasible
        self.count = nodes if feasible is None else int(np.count_nonzero(feasible))
        self._parts: list[_Part] = []
        totals = self._added(scores) if self.count else -np.inf
        self.totals: Totals = np.full(nodes, totals) if isinstance(totals, float) else totals
        if self.count and feasible is not None:
            self.totals[~feasible] = -np.inf

    def _added(self, scores: Sequence[Scored]) -> Totals | float:
        """The totals in an array of their own, or one for all nodes.

        They are added up in the order of the scores: in another one, doubles could differ.
        """
        totals: Totals | float = 0.0
        for scored in scores:
            if scored.scores is not None and scored.weight:
                between = extremes(scored.step.normalize, self._among(scored.scores))
                self._parts.append(part := _Part(scored, between))
                shares = part.shares()
                if isinstance(totals, float):
                    totals = totals + shares
                elif not isinstance(shares, float) or shares:
                    totals += shares
        return totals

    def follow(self, row: int, *, passes: bool) -> bool:
        """Take over what is said of a node now; false when all has to begin anew."""
        if not self.count:
            return False  # nothing was added up while no node was feasible
        passed = self.feasible is None or bool(self.feasible[row])
        if passed != passes:
            if self.feasible is None:
                self.feasible = np.ones(len(self.totals), np.bool_)
            self.feasible[row] = passes
            self.count += 1 if passes else -1
            # What normalisations look at are the feasible nodes.
            if not self.count or any(part.moves_with(part.of(row)) for part in self._parts):
                return False
        if not passes:
            self.totals[row] = -np.inf
            return True
        # As `share` says of each part, without the calls: 0.6 instead of 1.1 µs with four scores, and a hundredth of what an
        # equal pod costs.
        total = 0.0
        for part in self._parts:
            scored, between = part.scored, part.between
            score: float = scored.scores.item(row)  # type: ignore[union-attr]  # parts are of scores that count
            if between is not None:
                score = float(scaled_one(scored.step.normalize, score, between))
            total += score * scored.weight
        self.totals[row] = total
        return True

    def best(self) -> "Rows | int":
        """The nodes with the greatest total, or the only one; there is at least one that is feasible."""
        totals = self.totals
        equal = (totals == totals[totals.argmax()]).nonzero()[0]
        return int(equal[0]) if len(equal) == 1 else equal

    def _among(self, scores: Scores) -> Scores:
        if scores.strides == (0,):
            return scores[:1]
        return scores if self.feasible is None else scores[self.feasible]
