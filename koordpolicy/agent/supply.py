"""Keeps the pods of this node known: asks the first source, and the other one while the first is silent."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from koordpolicy.agent.collection import Collection
from koordpolicy.agent.pods import KubeletPods, PodAnswers, PodSource
from koordpolicy.kube.informer import Informer

_LOOK: Final = 1.0
"""Seconds between looks at who answers."""


class PodSupply:
    """Runs what feeds the mirror of pods. `informer` makes a new one of the API server's; None where that is not asked.

    Times are nanoseconds of a monotonic clock.
    """

    def __init__(
        self,
        answers: PodAnswers,
        kubelet: KubeletPods | None,
        informer: Callable[[], Informer] | None,
        collection: Callable[[], Collection],
        clock: Callable[[], int],
    ) -> None:
        self._answers = answers
        self._kubelet = kubelet
        self._make_informer = informer
        self._collection = collection
        self._clock = clock
        self._informer: Informer | None = None
        self._running: dict[PodSource, asyncio.Task[Any]] = {}

    async def run(self) -> None:
        """Feed the mirror until cancelled. Raises what ended a source for good."""
        try:
            while True:
                self.look()
                for task in self._running.values():
                    if task.done():
                        task.result()
                await asyncio.sleep(_LOOK)
        finally:
            for source in tuple(self._running):
                self._stop(source)

    def look(self) -> None:
        """Note who answers, and begin or end to ask the other one."""
        now = self._clock()
        if self._informer is not None and self._informer.synced and self._informer.failures <= 1:
            self._answers.good(PodSource.API_SERVER, now)
        first = self._answers.first
        other = next(one for one in PodSource if one is not first)
        self._start(first)
        silent = now - self._answers.heard.get(first, self._answers.began)
        if silent > self._collection().pods_stale_after:
            self._start(other)
        elif other in self._running and self._answers.heard.get(first) is not None:
            self._stop(other)

    def _start(self, source: PodSource) -> None:
        if source in self._running:
            return
        work: Callable[[], Awaitable[None]]
        if source is PodSource.KUBELET:
            if self._kubelet is None:
                return
            work = self._kubelet.run
        else:
            if self._make_informer is None:
                return
            self._informer = self._make_informer()
            work = self._informer.run
        self._running[source] = asyncio.ensure_future(work())

    def _stop(self, source: PodSource) -> None:
        task = self._running.pop(source)
        if not task.cancelled():
            with suppress(asyncio.InvalidStateError):
                task.cancel()
        if source is PodSource.API_SERVER:
            self._informer = None
