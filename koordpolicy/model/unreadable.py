"""The one door for objects from outside: what a reader makes of one, or why it is unreadable.

No object is read but through here, by all components. Readers raise ObjectError for what they know to be malformed;
anything else that they raise is a mistake of ours, which takes that object too, and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from koordpolicy.model.reading import ObjectError

T = TypeVar("T")
From = TypeVar("From")

_LONGEST: Final = 400
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands for an object that cannot be read. `reason` says where it is wrong, in printable text.

    `cause` is what nobody foresaw, None for an object that is simply malformed.
    """

    reason: str
    cause: Exception | None = field(default=None, compare=False)


def readable(read: Callable[[From], T], obj: From) -> T | Unreadable:
    """What a reader gives of an object."""
    try:
        return read(obj)
    except Exception as problem:  # noqa: BLE001  # whatever an object does to its reader, it does to nobody else
        return unreadable(problem)


def unreadable(problem: Exception) -> Unreadable:
    """What a reader raised, as a value."""
    if isinstance(problem, ObjectError):
        return Unreadable(_printable(str(problem)))
    return Unreadable(
        _printable(f"internal error, please report: {type(problem).__name__}: {problem}"), problem
    )


def _printable(text: str) -> str:
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")
