"""Keeps the garbage collector out of the way of decisions.

A full collection walks every object there is and stops all threads while it does: some tenths of a second with a
large rule graph. Graphs live long and hold no cycles, so nothing is gained by walking them again and again.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_USUAL: Final = gc.get_threshold()
_NEVER: Final = 1_000_000_000
_MANY: Final = 50_000
"""New objects between two looks at the young ones: looking at so many takes some milliseconds."""


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Make a graph within: young objects are collected as ever, and what is left at the end is not walked again.

    What was made before and is dropped later goes by its reference count. For one thread at a time, in a
    process that is ours alone.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    try:
        yield
        keep_what_is_there()
    finally:
        gc.set_threshold(young, middle, old)


def look_rarely() -> None:
    """Look for cycles once in many new objects: what a cluster is made of holds none, and comes by the thousand.

    Nobody looks at all there is until it is known what stays: until `keep_what_is_there`.
    """
    gc.set_threshold(_MANY, _USUAL[1], _NEVER)


def keep_what_is_there() -> None:
    """Do not walk again what there is now: to be called once a process knows its cluster."""
    gc.collect(1)
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], _USUAL[2])
