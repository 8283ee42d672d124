"""Which way an answer goes from one revision to the other."""

from enum import Enum

from koordpolicy.graph.diff.changes import Told
from koordpolicy.language.cel.values import Duration, Timestamp


class Heading(Enum):
    """Up or down: amounts that rise or fall, what is permitted or refused, what has an answer at last or no longer."""

    UP = "up"
    DOWN = "down"

    @property
    def back(self) -> "Heading":
        """The other one."""
        return Heading.DOWN if self is Heading.UP else Heading.UP


def way_of(old: Told, new: Told) -> Heading | None:
    """The way from one answer to another; None where they are alike, or nothing that has an order."""
    if old.error is not None or new.error is not None:
        return None if old.same(new) else Heading.UP if old.error is not None else Heading.DOWN
    return way_between(old.value, new.value)


def way_between(old: object, new: object) -> Heading | None:
    """The same of two values."""
    before: float
    after: float
    match old, new:
        case (Duration() | Timestamp(), Duration() | Timestamp()) if type(old) is type(new):
            before, after = old.ns, new.ns
        case (bool(), bool()) | (int() | float(), int() | float()):
            before, after = old, new
        case _:
            return None
    return Heading.UP if before < after else Heading.DOWN if after < before else None
