"""The scheduling loop: decisions one after another, their writes beside, many at a time.

A pod counts as placed from its decision on, so that the next decision need not wait for the write. How far
decisions may run ahead of writes is bounded.

No error ends it: one over a decision or a write takes that decision or write, and of anything else the queue is looked
at again after a pause.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from koordpolicy.kube import Cluster
from koordpolicy.kube.backoff import Backoff
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.scheduler.binder import Bind, Outcome, Plan, Preempt, apply, plan
from koordpolicy.scheduler.decision import Decision
from koordpolicy.scheduler.scheduler import Scheduler

LOG: Final = logging.getLogger(__name__)

ATTEMPTS: Final = 4
"""How often a write is tried before the pod goes back to the queue."""

IN_FLIGHT: Final = 1024
"""Decisions whose writes are on their way at most: far more than requests at a time, so that decisions, which share the
processor with the answers, come in long runs."""

BURST: Final = 16
"""Decisions before others on the event loop have their turn."""

SLICE: Final = 0.02
"""Seconds after which they have it in any case: a policy may make a decision dear."""

LONGEST_WAIT: Final = 5.0
"""Seconds after which the queue is looked at though nothing was heard."""

_PAUSE: Final = 1.0
"""Seconds until the queue is looked at again after it could not be."""

Now: TypeAlias = Callable[[], int]
"""The time in nanoseconds since 1970."""


class Settled(NamedTuple):
    """A decision with what came of it, for metrics, Events and logs."""

    decision: Decision
    pod: Pod
    outcome: Outcome | None


class SchedulingLoop:
    """Runs a scheduler against a cluster.

    `in_flight` bounds the writes that are on their way; `on_settled` hears of each decision once its writes
    are done, `on_failure` of errors that nobody foresaw and that took no decision. `wake` tells that something was
    heard.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: Cluster,
        now: Now,
        backoff: Backoff,
        *,
        in_flight: int = IN_FLIGHT,
        on_settled: Callable[[Settled], None] = lambda settled: None,
        on_failure: Callable[[Exception], None] = lambda problem: None,
    ) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._now = now
        self._backoff = backoff
        self._settle = on_settled
        self._on_failure = on_failure
        self._room = asyncio.Semaphore(in_flight)
        self._writes: set[asyncio.Task[None]] = set()
        self._heard = asyncio.Event()
        self._reporting: Counter[PodKey] = Counter()
        self.idle = asyncio.Event()
        """Set while no pod is due."""

    def wake(self) -> None:
        """Something happened that may let a pod be scheduled."""
        self._heard.set()

    @property
    def writing(self) -> int:
        """How many decisions are on their way to the cluster."""
        return len(self._writes)

    async def run(self) -> None:
        """Schedule until cancelled; what is on its way then is brought to its end (see `drain`)."""
        while True:
            self._heard.clear()
            try:
                await self._decide_all()
            except Exception as problem:  # noqa: BLE001  # told of by `_failed`
                self._failed("the queue could not be looked at", problem)
                await asyncio.sleep(_PAUSE)
                continue
            self.idle.set()
            try:
                await self._wait()
            finally:
                self.idle.clear()

    async def tell(self, decision: Decision, pod: Pod) -> Settled | None:
        """Write what is known of a pod that waits, though it was not decided on just now.

        None where that stands there already. Not for a pod that something `is_written` about.
        """
        planned = plan(replace(decision, preemption=None), pod, self._now())
        return None if planned is None else Settled(decision, pod, await self._reported(planned))

    def is_written(self, pod: PodKey) -> bool:
        """Whether a pod's condition is being written."""
        return pod in self._reporting

    async def drain(self, seconds: float) -> None:
        """Wait for the writes that are on their way, so long at most."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=seconds)

    async def _decide_all(self) -> None:
        """Decide on all pods that are due."""
        clock = asyncio.get_running_loop().time
        decided, began = 0, clock()
        while True:
            await self._room.acquire()
            try:
                found = self._scheduler.schedule_next()
            except BaseException:
                self._room.release()
                raise
            if found is None:
                self._room.release()
                return
            self._carry_out(*found)
            decided += 1
            if decided % BURST == 0 or clock() - began > SLICE:
                await asyncio.sleep(0)
                began = clock()

    def _carry_out(self, decision: Decision, pod: Pod) -> None:
        try:
            planned = plan(decision, pod, self._now())
        except Exception as problem:  # noqa: BLE001  # told of by `_failed`
            self._failed(f"there is no plan for pod {'/'.join(decision.pod)}", problem)
            self._scheduler.forget(pod)
            planned = None
        if planned is None:
            self._room.release()
            self._on_settled(Settled(decision, pod, None))
            return
        task = asyncio.create_task(self._write(decision, pod, planned))
        self._writes.add(task)
        task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writes.discard(task)
        self._room.release()
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._failed("what came of a write could not be dealt with", error)

    def _on_settled(self, settled: Settled) -> None:
        """Tell of a decision; that this fails must not change what was decided."""
        try:
            self._settle(settled)
        except Exception as problem:  # noqa: BLE001  # told of by `_failed`
            self._failed(
                f"the decision on pod {'/'.join(settled.decision.pod)} could not be told of", problem
            )

    def _failed(self, what: str, problem: Exception) -> None:
        LOG.error("%s: internal error, please report", what, exc_info=problem)
        self._on_failure(problem)

    async def _write(self, decision: Decision, pod: Pod, planned: Plan) -> None:
        bound = isinstance(planned, Bind)
        outcome = await (self._applied(planned) if bound else self._reported(planned))
        if outcome.error is not None:
            self._take_back(decision, pod, planned)
        self._on_settled(Settled(decision, pod, outcome))

    async def _applied(self, planned: Plan) -> Outcome:
        """What comes of a write that is tried again if it fails."""
        outcome, attempt = await apply(self._cluster, planned), 1
        while outcome.error is not None and not outcome.lost and attempt < ATTEMPTS:
            await self._backoff.sleep(self._backoff.delay(attempt))
            outcome, attempt = await apply(self._cluster, planned), attempt + 1
        return outcome

    async def _reported(self, planned: Plan) -> Outcome:
        """The same for what writes a pod's condition."""
        self._reporting[planned.pod] += 1
        try:
            return await self._applied(planned)
        finally:
            self._reporting[planned.pod] -= 1
            if not self._reporting[planned.pod]:
                del self._reporting[planned.pod]

    def _take_back(self, decision: Decision, pod: Pod, planned: Plan) -> None:
        """What was decided did not come to pass.

        Lost or not: the cluster's own news of the pod say what it is now, and taking back is idempotent.
        """
        if isinstance(planned, Bind):
            self._scheduler.forget(pod)
            self.wake()
        elif isinstance(planned, Preempt):
            self._scheduler.call_off(decision)

    async def _wait(self) -> None:
        """Wait until something is heard, or a pod becomes due by time alone."""
        due = self._scheduler.next_time()
        seconds = LONGEST_WAIT if due is None else min(LONGEST_WAIT, max(0.0, (due - self._now()) / 1e9))
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            pass
