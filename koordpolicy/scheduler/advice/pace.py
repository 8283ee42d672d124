"""How much work advice may be, and where it can be interrupted.

What takes long here is a generator: it yields `PAUSE` (of `plugins/base`) wherever others may have their turn, at the latest after
each evaluation of nodes, and is brought to its end by whoever wants the answer.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Work: TypeAlias = Generator[None, None, T]
"""Work in small pieces that comes to a result."""


class TooMuch(Exception):
    """As many evaluations as permitted have been made."""


class Evaluations:
    """How often nodes may be evaluated; `spent` is how often they were."""

    __slots__ = ("most", "spent")

    def __init__(self, most: int) -> None:
        self.most = most
        self.spent = 0

    def spend(self) -> None:
        """Before each evaluation. Raises TooMuch."""
        if self.spent >= self.most:
            raise TooMuch
        self.spent += 1


def finished(work: Work[T]) -> T:
    """The result of work that is done in one go."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
