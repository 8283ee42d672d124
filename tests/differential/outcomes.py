"""What an evaluation may come to beside a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failed:
    """An error of ours. Which of several errors shows is nobody's promise; `kind` is for people to read."""

    kind: str


@dataclass(frozen=True, slots=True)
class Error:
    """An error of a referee that is a program, in its own words."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The parser or checker of such a referee does not take the expression."""

    reason: str


class Bound:
    """Stands for an evaluation that reached a bound of such a referee."""
