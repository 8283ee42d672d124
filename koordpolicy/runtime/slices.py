"""Long work on the event loop that lets others have their turn."""

import asyncio
from typing import Final, TypeVar

from koordpolicy.algorithms.work import Work
from koordpolicy.runtime.clock import monotonic

T = TypeVar("T")

_SLICE: Final = 0.01
"""Seconds for which the loop is kept from leases, health and watches at most, beside the length of one piece."""


async def in_slices(work: Work[T]) -> T:
    """The result of work that is done in pieces."""
    until = monotonic() + _SLICE
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if monotonic() >= until:
            await asyncio.sleep(0)
            until = monotonic() + _SLICE
