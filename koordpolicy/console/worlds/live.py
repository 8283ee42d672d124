"""A live cluster: photographed again and again."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from koordpolicy.console.worlds.endings import GONE
from koordpolicy.console.worlds.pictured import PicturedWorld, Seen
from koordpolicy.console.worlds.world import PodBackground, PodSpan
from koordpolicy.diagnostics.wording import worded
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import Object
from koordpolicy.kube.snapshot import Snapshot, SnapshotError
from koordpolicy.runtime.clock import monotonic

LOG: Final = logging.getLogger(__name__)

_REMEMBERED: Final = 20_000
"""Pods that are told of when they are not there any more."""
_LONGEST_LOOK: Final = 300.0
"""Seconds after which a look is given up and begun anew, whatever it waits for."""
_AT_ONCE: Final = 500
_GRACE: Final = 10.0
"""Seconds that a look may take longer than the one before it until the page says that what it shows is old."""


class LiveWorld(PicturedWorld):
    """A cluster as it is now: `take` photographs it, every so many seconds, `read_beside` reads what is told of a pod. It writes nothing to it.

    Pods that are not there any more are remembered with the time of the look that missed them.
    """

    kind = "live"

    def __init__(
        self,
        graph: RuleGraph,
        snapshot: Snapshot,
        title: str,
        take: Callable[[], Awaitable[Snapshot]],
        interval: float,
        read_beside: Callable[[str, Snapshot], Awaitable[PodBackground]],
        clock: Callable[[], float] = monotonic,
        quietly: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Looks are taken within `quietly`, which may keep the garbage collector away."""
        self._open: dict[tuple[str, str], PodSpan] = {}
        self._past: deque[PodSpan] = deque(maxlen=_REMEMBERED)
        self._endings: Mapping[str, str] = {}
        self._now = clock
        self._quietly = quietly
        self._took = 0.0
        self._shown_at = clock()
        super().__init__(graph, snapshot, title)
        self._take = take
        self._interval = interval
        self._read_beside = read_beside

    def show(self, seen: Seen) -> None:
        """The same, and pods that this look misses have ended."""
        before = self._open
        self._open = {(span.pod, span.node): span for span in seen.spans}
        there = {span.pod for span in seen.spans}
        for key, span in before.items():
            now = self._open.get(key)
            # One that has not said yet since when it is there is the same once it does.
            if now is None or (span.start and now.start != span.start):
                span.end, span.cpu = seen.snapshot.taken, 0
                if span.pod not in there or span.node:  # else it only waited for a node
                    span.outcome = seen.endings.get(span.pod) or self._endings.get(span.pod) or GONE
                self._past.append(span)
        self._endings = seen.endings
        self._shown_at = self._now()
        super().show(seen)

    def clock(self) -> dict[str, Any]:
        """See `World`: `asOf` says of when the objects are, in seconds since 1970, where there should be newer ones; `failure` then says why not."""
        told = super().clock()
        waited = self._now() - self._shown_at
        why = self.trouble
        if not why and waited > self._interval + self._took + max(_GRACE, self._took):
            # A cluster may neither answer nor refuse, as where its store is away: only time tells.
            why = "the cluster does not answer"
        return {
            **told,
            "failure": why or told["failure"],
            "asOf": self._snapshot.taken / 1e9 if why else None,
        }

    def spans(self) -> tuple[PodSpan, ...]:
        """See `World`."""
        return (*self._past, *self._spans)

    async def beside(self, pod: str, picture: Snapshot) -> PodBackground:
        """See `World`: asked of the cluster each time."""
        return await self._read_beside(pod, picture)

    async def follow(self) -> None:
        """Photograph the cluster again and again; what is in the way is told on the page, until it works again."""
        while True:
            await asyncio.sleep(self._interval)
            began = self._now()
            try:
                with self._quietly():
                    async with asyncio.timeout(_LONGEST_LOOK):
                        snapshot = await self._take()
                    seen = await asyncio.to_thread(self.read, snapshot)
                    before = [one for some in self._snapshot.objects.values() for one in some]
                    self.show(seen)
                    self.trouble, self._took = "", self._now() - began
                    await _let_go(before)
            except TimeoutError:
                self.trouble = f"the cluster cannot be read: it has not answered within {_LONGEST_LOOK:.0f} s"
            except (KubeError, SnapshotError) as error:
                self.trouble = f"the cluster cannot be read: {worded(error)}"
            if self.trouble:
                LOG.warning("%s", self.trouble)


async def _let_go(objects: list[Object]) -> None:
    """Drop objects bit by bit: to free those of a whole cluster at once takes long enough to be felt."""
    while objects:
        del objects[-_AT_ONCE:]
        await asyncio.sleep(0)
