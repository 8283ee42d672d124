"""Exceptions that are none of the language's: mistakes of this program, which cost one evaluation and nothing more.

Whatever runs expressions lets nothing but `CelError` out. An exception of another class is a defect: it becomes an
`InternalError`, an error like any other, and is counted in `SEEN`, so that what looks for defects (fuzzers, tests) finds
those that evaluations survive.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeVar

from koordpolicy.language.cel.errors import CelError, InternalError, LimitExceeded

T = TypeVar("T")

SEEN: Final[Counter[str]] = Counter()
"""How many exceptions of each class evaluations have met in this process."""


def error_of(defect: Exception) -> CelError:
    """The error that stands for an exception. Where memory or the stack is at its end, a limit was reached."""
    if isinstance(defect, CelError):
        return defect
    SEEN[type(defect).__name__] += 1
    if isinstance(defect, (MemoryError, RecursionError)):
        return LimitExceeded(f"the evaluation needs more than there is ({type(defect).__name__})")
    return InternalError(defect)


def guarded(compute: Callable[[], T]) -> T:
    """What a computation gives. Raises CelError and no other Exception."""
    try:
        return compute()
    except CelError:
        raise
    except Exception as defect:
        raise error_of(defect) from defect
