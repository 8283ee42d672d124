"""The loop of whatever keeps objects in the cluster as they should be: write what differs, and again after failures."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from koordpolicy.kube.backoff import Backoff


class ReconcileLoop:
    """Calls `reconcile` at first, after each `trigger`, and when it is due again.

    `reconcile` gives the seconds after which it is due, or None where something could not be written: then it is due
    after the backoff for so many failures in a row. Triggers while it runs make for one more call.
    """

    def __init__(self, reconcile: Callable[[], Awaitable[float | None]], backoff: Backoff) -> None:
        self._reconcile = reconcile
        self._backoff = backoff
        self._triggered = asyncio.Event()

    def trigger(self) -> None:
        """Something may differ by now."""
        self._triggered.set()

    async def run(self) -> None:
        """Reconcile until cancelled. Raises what `reconcile` raises."""
        failures = 0
        while True:
            self._triggered.clear()
            wait = await self._reconcile()
            failures = failures + 1 if wait is None else 0
            with suppress(TimeoutError):
                async with asyncio.timeout(self._backoff.delay(failures) if wait is None else wait):
                    await self._triggered.wait()
