"""One thing that a node can do or not, as the doctor tells it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ability:
    """`means` is what is not done where it is not there; `why` what was found."""

    name: str
    there: bool
    why: str
    means: str = ""
