"""When a scheduler finds out about pods that wait: while none is due, a slice at a time, for its share of the time.

In between everything else on the event loop has its turn: news, decisions, the lease, health.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from koordpolicy.model.pod import Pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.clock import monotonic
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.driver import Settled
from koordpolicy.scheduler.loop import SchedulingLoop
from koordpolicy.scheduler.scheduler import Scheduler

LOG: Final = logging.getLogger(__name__)

REST: Final = 0.25
"""Seconds after which is looked again whether there is something to find out."""


class Diagnosing:
    """Lets a scheduler go on finding out beside its loop, and writes what there is to say.

    `on_told` hears of what was written, `on_evaluated` how often nodes were evaluated, `on_failure` of errors that
    nobody foresaw. `seconds` is a clock that
    never goes back.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        loop: SchedulingLoop,
        *,
        on_told: Callable[[Settled], None] = lambda settled: None,
        on_evaluated: Callable[[int], None] = lambda count: None,
        on_failure: Callable[[Exception], None] = lambda problem: None,
        seconds: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scheduler = scheduler
        self._loop = loop
        self._on_told = on_told
        self._on_evaluated = on_evaluated
        self._on_failure = on_failure
        self._seconds = seconds
        self._sleep = sleep
        self._told: list[tuple[PodDecision, Pod]] = []

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            await self._loop.idle.wait()
            diagnosis = self._scheduler.diagnosis
            limits, before = diagnosis.limits, diagnosis.evaluations
            rest = REST
            if limits.share:
                begin = self._seconds()
                end = begin + limits.slice / NANOSECONDS
                found = diagnosis.some(lambda end=end: self._seconds() >= end)  # type: ignore[misc]
                spent = self._seconds() - begin
                rest = max(spent / limits.share - spent, 0.0 if found.more else REST)
                self._told += found.told
                for problem in found.failures:
                    self._on_failure(problem)
                if found.again:
                    self._loop.wake()
                if count := diagnosis.evaluations - before:
                    self._on_evaluated(count)
            await self._tell_all()
            await self._sleep(rest)

    async def _tell_all(self) -> None:
        """Write what there is to say, but for pods about which something is on its way: that comes first."""
        if self._told:
            told, self._told = self._told, []
            for one in await asyncio.gather(*(self._tell(*one) for one in told), return_exceptions=True):
                if isinstance(one, Exception):
                    LOG.error(
                        "what refuses a pod could not be told: internal error, please report", exc_info=one
                    )
                    self._on_failure(one)

    async def _tell(self, decision: PodDecision, pod: Pod) -> None:
        if self._scheduler.last_decision(decision.pod) is not decision:
            return  # something else is known by now
        if self._loop.is_written(decision.pod):
            self._told.append((decision, pod))
            return
        settled = await self._loop.tell(decision, pod)
        if settled is not None:
            self._on_told(settled)
