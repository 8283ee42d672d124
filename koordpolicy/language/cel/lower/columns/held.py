"""From a run-time value to what an array holds: the one door by which single values enter columns."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from koordpolicy.language.cel.errors import WrongType
from koordpolicy.language.cel.lower.columns.symbols import BOOL, DOUBLE, DURATION, INT, STRING, TIMESTAMP
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, Duration, Timestamp
from koordpolicy.model.table.columns import BeyondColumnsError

_CLASSES: Final[Mapping[str, type]] = {
    INT: int, DOUBLE: float, BOOL: bool, STRING: str, DURATION: Duration, TIMESTAMP: Timestamp,
}  # fmt: skip


class Codes(Protocol):
    """What gives strings their numbers: those of a table, or of one call."""

    def code(self, text: str) -> int:
        """The number of a string, equal for equal strings."""
        ...


def held(value: Any, kind: str, strings: Codes) -> Any:
    """The number, bool or string number that stands for a value in an array of a kind.

    Raises WrongType for a value of another class, which NumPy would convert or refuse in its own way, and
    BeyondColumnsError for a point in time outside of int64 nanoseconds.
    """
    checked(value, kind)
    if kind == STRING:
        return strings.code(value)
    return instant(value) if kind in (DURATION, TIMESTAMP) else value


def checked(value: Any, kind: str) -> None:
    """Raise WrongType unless a value is of the class that a kind stands for."""
    if type(value) is not _CLASSES[kind]:
        raise WrongType(f"a {kind} is wanted, found {type(value).__name__}")


def instant(value: Any) -> int:
    """The nanoseconds of a duration or point in time. Raises BeyondColumnsError."""
    ns: int = value.ns
    if not INT_MIN <= ns <= INT_MAX:
        raise BeyondColumnsError
    return ns
