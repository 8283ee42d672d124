"""What a profile says of every node about one pod."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.cluster.nodes import Rows
from koordpolicy.scheduler.evaluation.answers import Filtered, Scored
from koordpolicy.scheduler.evaluation.keys import CacheKeys, stale
from koordpolicy.scheduler.evaluation.ranking import Ranking


class Speaking(NamedTuple):
    """The answers among those of an evaluation that say something."""

    filters: Sequence[Filtered]
    scores: Sequence[Scored]


@dataclass(slots=True, eq=False)
class Evaluation:
    """The answers of all filters and scores of a profile, in order, about so many nodes.

    Scores are left out where only filters were asked. `barred` nodes are promised to other pods. `cache_keys` are those
    of the plugins that look beyond nodes and have something to say.
    """

    nodes: int
    filters: Sequence[Filtered]
    scores: Sequence[Scored]
    cache_keys: CacheKeys
    barred: Mask | None = None
    speaking: Speaking | None = field(default=None, init=False)
    """Those that say something, as long as nobody writes answers; None where any may."""
    _ranking: Ranking | None = field(default=None, init=False)
    _made: tuple[int, CacheKeys, dict[object, Any]] | None = field(default=None, init=False)
    _owned: bool = field(default=False, init=False)

    def feasible(self) -> Mask | None:
        """The nodes that no filter refuses and that are not promised, in an array of its own; None where all are."""
        feasible = None if self.barred is None else ~self.barred
        for one in self.filters if self.speaking is None else self.speaking.filters:
            if (one.verdicts is None or one.verdicts.none) and one.accepted is None:
                continue  # as most of them
            passes = one.passing()
            if passes is not None:
                feasible = passes if feasible is None else np.asarray(feasible & passes, np.bool_)
        return feasible

    @property
    def scores_fail(self) -> bool:
        """Whether the expression of a score may have failed on a node."""
        # Asked of each decision; `any` over a generator takes three times as long.
        scores = self.scores if self.speaking is None else self.speaking.scores
        return True in [one.failed is not None for one in scores]

    @property
    def filters_fail(self) -> bool:
        """Whether the expression of a filter may have failed on a node."""
        filters = self.filters if self.speaking is None else self.speaking.filters
        return True in [one.failed for one in filters]

    def refusing(self, row: int) -> "Evaluation":
        """The same, one more node barred that passes by itself but not with those it is promised to."""
        barred = np.zeros(self.nodes, np.bool_) if self.barred is None else self.barred.copy()
        barred[row] = True
        return replace(self, barred=barred)

    def ranking(self) -> Ranking | None:
        """How all nodes rank, worked out once; None where this is not enough: nodes are barred, or a score looks at
        the feasible nodes in view of each other.
        """
        if self._ranking is None and self.barred is None and not self._ranks_the_feasible():
            self._ranking = Ranking(
                self.feasible(), self.scores if self.speaking is None else self.speaking.scores, self.nodes
            )
        return self._ranking

    def _ranks_the_feasible(self) -> bool:
        return bool(self.cache_keys) and any(
            one.step.plugin is not None
            and one.step.plugin.rank is not None
            and one.step.place in self.cache_keys
            for one in self.scores
        )

    def made(self, version: int) -> dict[object, Any]:
        """What others make of the answers, to be kept here as long as answers and nodes are what they are.

        `version` is that of the table. Answers that look beyond nodes change with the cache keys, which are others then.
        """
        known = self._made
        if known is None or known[0] != version or known[1] is not self.cache_keys:
            known = self._made = version, self.cache_keys, {}
        return known[2]

    # --- for who keeps it up to date --------------------------------------------------------------

    def own(self) -> None:
        """Have arrays of its own to write."""
        if not self._owned:
            self._owned = True
            self.speaking = None
            self.filters = [one.owned() for one in self.filters]
            self.scores = [one.owned() for one in self.scores]

    def overlay(self, news: "Evaluation", rows: Rows) -> bool:
        """Take over what is said of some rows now; of plugins whose cache keys differ, what is said of all nodes.

        False where the two differ in kind: then this one is void.
        """
        self.own()
        self._ranking = None
        known, fresh = self.cache_keys, news.cache_keys
        self.cache_keys = fresh
        filters, scores = (
            zip(self.filters, news.filters, strict=True),
            zip(self.scores, news.scores, strict=True),
        )
        return all(
            old.overlay(new, rows, whole=stale(known, fresh, new.step.place)) for old, new in filters
        ) and all(old.overlay(new, rows, whole=stale(known, fresh, new.step.place)) for old, new in scores)
