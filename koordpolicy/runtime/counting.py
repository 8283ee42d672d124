"""Where numbers are counted: what a process's metrics take, without the library that shows them.

A simulation uses the parts of a process that count, and nobody scrapes it.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

Sample = tuple[Sequence[str], float]
"""Label values in the order of the table of metrics, and the number."""


class Counted(Protocol):
    """Counts that are kept elsewhere, because counting must cost next to nothing there."""

    def samples(self) -> Iterable[Sample]:
        """The counts now; asked for at each scrape, from any thread."""
        ...


class Counters(Protocol):
    """Takes counts by the names of the table of metrics."""

    def add(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Count."""
        ...

    def set(self, name: str, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        ...

    def count_elsewhere(self, name: str, counted: Counted) -> None:
        """Show a counter whose numbers somebody else keeps. Once a name."""
        ...


class Unscraped:
    """`Counters` of a run that nobody scrapes."""

    def add(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Nobody will ask."""

    def set(self, name: str, value: float, /, **labels: str) -> None:
        """Nobody will ask."""

    def count_elsewhere(self, name: str, counted: Counted) -> None:
        """Nobody will ask."""
