"""Decisions that are asked again and again about the same: pods of one workload mostly differ in nothing that
one of them reads, and nodes neither.
"""

from collections.abc import Callable, Collection, Hashable
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any, Final

from koordpolicy.cluster.prepared import NO_FACTS, Records
from koordpolicy.model.table.kinds import ABSENT

_MOST: Final = 1024
"""Answers that are kept; with more all are forgotten."""

_NOWHERE: Final = repeat(ABSENT)


class MemoizedDecision:
    """The latest answers of a decision by all the facts that it reads, as (root, path).

    Answers are shared: do not write.
    """

    __slots__ = ("_answers", "_ask", "_flat", "_paths")

    def __init__(self, ask: Callable[[Records], Any], facts: Collection[tuple[str, str]]) -> None:
        self._ask = ask
        # A record that is read as a whole stands there without a path. Two such are hardly ever equal.
        self._paths = (
            tuple(
                (root, tuple(path for _, path in those))
                for root, those in groupby(sorted(facts), itemgetter(0))
            )
            if all(path for _, path in facts)
            else None
        )
        self._flat = True
        """Whether no fact has been a list or a map so far: such are no part of a key as they are. What stands at a path is always of one
        class.
        """
        self._answers: dict[Hashable, Any] = {}

    def value(self, records: Records) -> Any:
        """The answer on these records. What the decision raises is raised, and not remembered."""
        if self._paths is None:
            return self._ask(records)
        values: list[Any] = []
        for root, paths in self._paths:
            values += map(records.get(root, NO_FACTS).get, paths, _NOWHERE)
        if not self._flat:
            values = [
                tuple(value.items())
                if type(value) is dict
                else tuple(value)
                if type(value) is list
                else value
                for value in values
            ]
        key = tuple(values)
        try:
            found = self._answers.get(key, self)
        except TypeError:
            if not self._flat:  # a list of maps, or a map of lists
                return self._ask(records)
            self._flat = False
            return self.value(records)
        if found is self:
            found = self._ask(records)
            if len(self._answers) >= _MOST:
                self._answers.clear()
            self._answers[key] = found
        return found
