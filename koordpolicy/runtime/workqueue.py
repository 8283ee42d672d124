"""A queue of names to reconcile: each waits once, is worked on once at a time, and comes back when it failed."""

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError, TooManyRequests
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.metrics import Metrics

LOG: Final = logging.getLogger(__name__)

Reconcile = Callable[[str], Awaitable[bool]]
"""Brings one object to what it should be; whether anything was written. Raises to be tried again."""


_PLACES: Final = 100
"""Places whose errors are shown once; beyond it, each is."""


class WorkQueue:
    """Names that wait, in order. What is added while it is worked on comes again afterwards.

    `backoff` spaces out the attempts after failures, name by name; `least` is how many seconds pass at least. Used on one
    event loop.
    """

    def __init__(
        self, name: str, metrics: Metrics, backoff: Backoff, least: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.name = name
        self._metrics = metrics
        self._backoff = backoff
        self._least = least
        self._waiting: deque[str] = deque()
        self._queued: set[str] = set()
        self._working: set[str] = set()
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}
        self._later: list[tuple[float, int, str]] = []
        self._due: dict[str, float] = {}
        self._count = itertools.count()
        self._news = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._shown: set[tuple[type[Exception], str]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, name: str) -> None:
        """Reconcile soon."""
        if name in self._working:
            self._again.add(name)
        elif name not in self._queued:
            self._queued.add(name)
            self._waiting.append(name)
            self._news.set()

    def add_after(self, name: str, seconds: float) -> None:
        """Reconcile in so many seconds, or when it is due anyway if that is sooner."""
        if seconds <= 0:
            self.add(name)
            return
        due = monotonic() + seconds
        if name in self._queued or self._due.get(name, due + 1) <= due:
            return
        self._due[name] = due
        heapq.heappush(self._later, (due, next(self._count), name))
        self._wake()

    def forget(self, name: str) -> None:
        """The object is gone: neither failures nor appointments matter any more."""
        self._failures.pop(name, None)
        self._due.pop(name, None)

    async def run(self, reconcile: Reconcile, workers: int = 1) -> None:
        """Reconcile until cancelled, so many at a time."""
        if self._later:
            self._wake()
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(workers):
                    group.create_task(self._work(reconcile), name=f"{self.name} {number}")
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
            self._working.clear()
            self._again.clear()

    async def _work(self, reconcile: Reconcile) -> None:
        while True:
            while not self._waiting:
                self._news.clear()
                await self._news.wait()
            name = self._waiting.popleft()
            self._queued.discard(name)
            self._working.add(name)
            self._metrics.set("koordpolicy_queue_depth", len(self._waiting), queue=self.name)
            try:
                await self._attempt(name, reconcile)
            finally:
                self._working.discard(name)
            if name in self._again:
                self._again.discard(name)
                self.add(name)
            await asyncio.sleep(0)  # others get their turn, though nothing was waited for

    async def _attempt(self, name: str, reconcile: Reconcile) -> None:
        began = monotonic()
        try:
            result = "written" if await reconcile(name) else "unchanged"
            self._failures.pop(name, None)
        except KubeError as error:
            self._failed(name, error)
            result = "failed"
        except Exception as error:  # noqa: BLE001  # `_unforeseen` logs it
            self._unforeseen(name, error)
            self._failed(name, error)
            result = "failed"
        self._metrics.add("koordpolicy_reconcile_total", queue=self.name, result=result)
        self._metrics.observe("koordpolicy_reconcile_duration_seconds", monotonic() - began, queue=self.name)

    def _unforeseen(self, name: str, error: Exception) -> None:
        """Show where an error comes from once: thousands of names may fail alike."""
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        place = "" if frame is None else f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
        known = (type(error), place) in self._shown
        if len(self._shown) < _PLACES:
            self._shown.add((type(error), place))
        if not known:
            LOG.error("%s: %s failed: internal error, please report", self.name, name, exc_info=error)

    def _failed(self, name: str, error: Exception) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        delay = max(self._backoff.delay(failures), self._least())
        if isinstance(error, TooManyRequests):
            delay = max(delay, error.retry_after)
        LOG.log(
            logging.WARNING if failures == 1 else logging.DEBUG,
            "%s: %s failed (%s); again in %.1f s",
            self.name,
            name,
            error,
            delay,
        )
        self.add_after(name, delay)

    def _wake(self) -> None:
        """Set the alarm to the next appointment."""
        if self._alarm is not None:
            self._alarm.cancel()
        delay = max(0.0, self._later[0][0] - monotonic())
        self._alarm = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now = monotonic()
        while self._later and self._later[0][0] <= now:
            due, _, name = heapq.heappop(self._later)
            if self._due.get(name) == due:  # else it was moved forward, or forgotten
                del self._due[name]
                self.add(name)
        if self._later:
            self._wake()
