"""What one fuzzer is made of."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

Mutate = Callable[[Random, Sequence[bytes]], bytes]
"""Draws a new input from the seeds."""


@contextmanager
def nothing() -> Iterator[None]:
    """For targets that need nothing state them."""
    yield


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of input.

    `run` takes one input and raises where it shows a defect, `seeds` are inputs as users write them, `mutate` changes
    them. `limit` is how many seconds one input may take before it counts as a hang.
    """

    name: str
    about: str
    seeds: Callable[[], Sequence[bytes]]
    mutate: Mutate
    run: Callable[[bytes], None]
    limit: float = 10.0


class Defect(AssertionError):
    """What an input showed, where nothing was raised by itself."""
