"""Keeps the garbage collector out of the way.

What is imported, compiled and taken in comes by the hundred thousand, stays, and holds next to no cycles; Python's
usual setting walks all of it again and again while it comes, and once more, twice, at the interpreter's end. So:

    the command line   `seldom`: young objects are looked at once in many, from before the imports on;
                       `collect` when something large is over
    a process          `keep_what_is_there` for what was imported, `quiet_collector` around each graph,
                       `hold_back` while the cluster's lists come in, then `keep_what_is_there` and `give_back`;
                       `QuietLooks` where all of them come in again and again

From then on all is as usual, but for the number of new objects between two looks: cycles are found, young ones
soon, old ones now and then. Thresholds belong to the whole process, so only who owns it may call these.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

USUAL: Final = gc.get_threshold()
"""The thresholds of a Python that nobody has told otherwise."""
_NEVER: Final = 1_000_000_000
_MANY: Final = 50_000
"""New objects between two looks at the young ones: looking at so many takes some milliseconds."""
_MORE: Final = 6 * _MANY
"""The same where nobody waits: more than all modules of a component make, and some tens of megabytes at most if they were garbage."""


@contextmanager
def seldom() -> Iterator[None]:
    """Run a command within: its imports are not walked, and nothing is at the interpreter's end."""
    gc.set_threshold(_MORE, *USUAL[1:])
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*USUAL)


def collect() -> None:
    """Free now what refers to itself, such as a whole cluster that a command has simulated, before more of it comes."""
    gc.collect()


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Make a graph within: young objects are collected as ever, and what is left at the end is not walked again.

    What was made before and is dropped later goes by its reference count. For one thread at a time.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    try:
        yield
        gc.collect(1)  # compiling leaves some cycles, and is done over and over
        gc.freeze()
    finally:
        # Beside the making of a graph the process goes on: how often it looks at young objects now is its affair.
        gc.set_threshold(*gc.get_threshold()[:2], old)


class QuietLooks:
    """For a process that takes in a whole cluster again and again, each picture in the place of the one before."""

    def __init__(self, between: int = 128) -> None:
        """`between`: looks between two walks over all there is."""
        self._between = between
        self._looks = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Look within: only the youngest objects are collected, which takes milliseconds, and what has been made is not walked again.

        It goes by its reference counts. What refers to itself and outlives a collection in this time is found by the walk over
        everything that comes once in many looks, and may take a second in a large cluster.
        """
        gc.set_threshold(_MANY, _NEVER, _NEVER)
        try:
            yield
        finally:
            self._looks += 1
            if self._looks % self._between == 0:
                gc.unfreeze()
                gc.collect()
            keep_what_is_there()


def hold_back() -> None:
    """Look for no cycles at all until the next `look_again` or `keep_what_is_there`, which must be soon."""
    gc.set_threshold(0)


def look_again() -> None:
    """Look for cycles once in many new objects."""
    gc.set_threshold(_MANY, *USUAL[1:])


def keep_what_is_there() -> None:
    """Do not walk again what there is now, such as all modules, or a cluster once it is known."""
    gc.freeze()
    look_again()


def give_back() -> None:
    """Let the system have the memory that is free: buffers of connections and texts that lists came in leave some megabytes.

    The C library keeps it otherwise. One that is not glibc has no such function, and gives back by itself.
    """
    import ctypes  # noqa: PLC0415  # a command that only prints its help imports this module, too

    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
