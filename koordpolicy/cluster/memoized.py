"""Decisions that are asked again and again about the same: pods of one workload mostly differ in nothing that
one of them reads, and nodes neither.
"""

from collections.abc import Callable, Collection, Hashable
from typing import Any, Final

from koordpolicy.cluster.prepared import NO_FACTS, Records
from koordpolicy.model.table.kinds import ABSENT

_MOST: Final = 1024
"""Answers that are kept; with more all are forgotten."""


class MemoizedDecision:
    """The latest answers of a decision by all the facts that it reads, as (root, path).

    Answers are shared: do not write.
    """

    __slots__ = ("_answers", "_ask", "_facts")

    def __init__(self, ask: Callable[[Records], Any], facts: Collection[tuple[str, str]]) -> None:
        self._ask = ask
        # A record that is read as a whole stands there without a path. Two such are hardly ever equal.
        self._facts = sorted(facts) if all(path for _, path in facts) else None
        self._answers: dict[Hashable, Any] = {}

    def value(self, records: Records) -> Any:
        """The answer on these records. What the decision raises is raised, and not remembered."""
        if self._facts is None:
            return self._ask(records)
        try:
            key = tuple([_part(records.get(root, NO_FACTS).get(path, ABSENT)) for root, path in self._facts])
            found = self._answers.get(key, self)
        except TypeError:  # a list of maps, or a map of lists
            return self._ask(records)
        if found is self:
            found = self._ask(records)
            if len(self._answers) >= _MOST:
                self._answers.clear()
            self._answers[key] = found
        return found


def _part(value: Any) -> Any:
    """A fact as part of a key; what stands at a path is always of one class."""
    if type(value) is dict:
        return tuple(value.items())
    return tuple(value) if type(value) is list else value
