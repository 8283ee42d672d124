"""Long work in small pieces, so that others may have their turn between two of them.

What takes long is a generator: it yields wherever it may rest, and is brought to its end by whoever wants the answer.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Work: TypeAlias = Generator[None, None, T]
"""Work in small pieces that comes to a result."""


def finished(work: Work[T]) -> T:
    """The result of work that is done in one go."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
