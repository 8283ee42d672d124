"""Decisions that are asked again and again about the same: pods of one workload mostly differ in nothing that
one of them reads.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Final

from koordpolicy.model.table_kinds import ABSENT
from koordpolicy.scheduler.asked import Asked, Records

_MOST: Final = 1024
"""Answers that are kept; with more all are forgotten."""


class Remembered:
    """A decision with its latest answers by all the facts that it reads. Answers are shared: do not write."""

    __slots__ = ("_answers", "_asked", "_facts")

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._facts = sorted(asked.facts)
        self._answers: dict[Hashable, Any] = {}

    def value(self, records: Records) -> Any:
        """What the decision says of these records; None when no rule matches. Raises CelError."""
        try:
            key = tuple([_part(records.get(root, _NO_FACTS).get(path, ABSENT)) for root, path in self._facts])
            found = self._answers.get(key, self)
        except TypeError:  # a list, or a map of such
            return self._asked.value(records)
        if found is self:
            found = self._asked.value(records)
            if len(self._answers) >= _MOST:
                self._answers.clear()
            self._answers[key] = found
        return found


_NO_FACTS: Final[Mapping[str, Any]] = {}


def _part(value: Any) -> Any:
    """A fact as part of a key; what stands at a path is always of one class."""
    return tuple(value.items()) if type(value) is dict else value
