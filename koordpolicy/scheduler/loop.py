"""The scheduling loop: decisions one after another, their writes beside, many at a time.

A pod counts as placed from its decision on, so that the next decision need not wait for the write. How far
decisions may run ahead of writes is bounded.

No error ends it: one over a decision or a write takes that decision or write, and of anything else the queue is looked
at again after a pause.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Final, TypeAlias

from koordpolicy.kube import Cluster, Object, Patch, Resource
from koordpolicy.kube.backoff import Backoff
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.scheduler.binder import (
    Binding,
    OvertakenError,
    Prebind,
    WriteOutcome,
    WritePlan,
    apply,
    plan,
)
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.driver import NOT_WANTED, Action, Driver, Settled
from koordpolicy.scheduler.plugins.base import Sleep
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

_LONG: Final = 0.1
"""Seconds of decisions after which one turn is too little for others: who takes many of them, one after another, to read
policies or to answer a probe, would come on by one step a decision."""

_SHARE: Final = 0.25
"""They have time then, so much of what the decisions took."""

LONGEST_WAIT: Final = 5.0
"""Seconds after which the queue is looked at though nothing was heard."""

ENDING: Final = "this process stops, or leads no more"
"""Why a pod is not bound that waited for something when the loop was drained."""

_PAUSE: Final = 1.0
"""Seconds until the queue is looked at again after it could not be."""

Now: TypeAlias = Callable[[], int]
"""The time in nanoseconds since 1970."""


class SchedulingLoop:
    """Runs a scheduler against a cluster.

    `in_flight` bounds the writes that are on their way: each has a slot as long as it lasts, and decisions go on while
    there is one. What a pod waits for before it is bound has none. `on_settled` and `on_failure` are the driver's.
    `wake` tells that something was heard. `on_timed` hears how many seconds each decision took.
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
        on_timed: Callable[[Action, float], None] = lambda action, seconds: None,
    ) -> None:
        self._scheduler = scheduler
        self._driver = Driver(scheduler, on_settled=on_settled, on_failure=on_failure)
        self._on_timed = on_timed
        self._cluster = cluster
        self._now = now
        self._backoff = backoff
        self._slots = asyncio.Semaphore(in_flight)
        self._port = _SlottedPort(cluster, self._slots, self._waits)
        self._writes: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Timeout] = set()
        """What is waited for and is no answer of the cluster, each with what ends it."""
        self._ending = False
        """Whether nothing new is to begin: from `drain` until the next `run`."""
        self._awaiting_claims = 0
        self._heard = asyncio.Event()
        self._reporting: Counter[PodKey] = Counter()
        self.idle = asyncio.Event()
        """Set while no pod is due."""
        scheduler.on_news(self.wake)

    def wake(self) -> None:
        """Something happened that may let a pod be scheduled."""
        self._heard.set()

    @property
    def writing(self) -> int:
        """How many decisions are on their way to the cluster, or wait for their turn."""
        return len(self._writes) - self._awaiting_claims

    @property
    def awaiting_claims(self) -> int:
        """How many pods have a node and wait for their claims there: these are written, or others have to act on them."""
        return self._awaiting_claims

    async def run(self) -> None:
        """Schedule until cancelled; what is on its way then is brought to its end by `drain`."""
        self._ending = False
        while True:
            self._heard.clear()
            try:
                await self._decide_all()
            except Exception as problem:  # noqa: BLE001  # told of by `_failed`
                self._driver.failed("the queue could not be looked at", problem)
                await asyncio.sleep(_PAUSE)
                continue
            self.idle.set()
            try:
                await self._wait()
            finally:
                self.idle.clear()

    async def tell(self, decision: PodDecision, pod: Pod) -> Settled | None:
        """Write what is known of a pod that waits, though it was not decided on just now.

        None where that stands there already. Not for a pod that something `is_written` about.
        """
        planned = plan(replace(decision, preemption=None), pod, self._now())
        return None if planned is None else Settled(decision, pod, await self._reported(planned))

    def is_written(self, pod: PodKey) -> bool:
        """Whether a pod's condition is being written."""
        return pod in self._reporting

    async def drain(self, seconds: float) -> None:
        """Wait for requests that are on their way, so long at most, and for nothing else.

        What waits for claims, permits, another try or its turn is taken back: whoever schedules next decides on it anew, and
        writes again what was written.
        """
        self._ending = True
        self._driver.pause()
        now = asyncio.get_running_loop().time()
        for waiting in self._waiting:
            if not waiting.expired():
                waiting.reschedule(now)
        if self._writes:
            await asyncio.wait(self._writes, timeout=seconds)

    async def _decide_all(self) -> None:
        """Decide on all pods that are due."""
        clock = asyncio.get_running_loop().time
        decided, began = 0, clock()
        while True:
            await self._slots.acquire()
            asked = clock()
            try:
                action = self._driver.next_action(self._now())
            except BaseException:
                self._slots.release()
                raise
            if action is None or action.plan is None or isinstance(action.plan, Prebind):
                self._slots.release()
            if action is None:
                return
            if action.plan is not None:
                task = asyncio.create_task(self._carry_out(action, action.plan))
                self._writes.add(task)
                task.add_done_callback(self._carried_out)
            decided += 1
            took = clock() - began
            self._timed(action, began + took - asked)
            if decided % BURST == 0 or took > SLICE:
                await asyncio.sleep(took * _SHARE if took > _LONG else 0)
                began = clock()

    def _timed(self, action: Action, seconds: float) -> None:
        try:
            self._on_timed(action, seconds)
        except Exception as problem:  # noqa: BLE001  # told of by `failed`
            self._driver.failed("how long a decision took could not be told of", problem)

    async def _carry_out(self, action: Action, planned: WritePlan) -> None:
        """Bring an action to its end, and what follows from it. It has a slot if it needs one."""
        if isinstance(planned, Prebind):
            self._awaiting_claims += 1
            try:
                outcome = await self._applied(planned, lambda seconds: self._rest(action, seconds))
            finally:
                self._awaiting_claims -= 1
            follows = self._driver.done(action, outcome)
            if follows is None or follows.plan is None:
                self.wake()
                return
            try:
                async with self._waits():
                    await self._slots.acquire()
            except OvertakenError as error:
                self._driver.done(follows, WriteOutcome(follows.plan, error))
                return
            await self._carry_out(follows, follows.plan)
        else:
            try:
                written = self._applied if isinstance(planned, Binding) else self._reported
                outcome = await written(planned)
                self._driver.done(action, outcome)
                if outcome.error is not None and isinstance(planned, Binding):
                    self.wake()
            finally:
                self._slots.release()

    def _carried_out(self, task: asyncio.Task[None]) -> None:
        self._writes.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._driver.failed("what came of a write could not be dealt with", error)

    async def _rest(self, action: Action, seconds: float) -> None:
        """Wait for what is to be before a pod is bound, as long as that is wanted. Raises OvertakenError."""
        async with self._waits():
            await self._backoff.sleep(seconds)
        if not self._driver.wants(action):
            raise OvertakenError(NOT_WANTED)

    @asynccontextmanager
    async def _waits(self) -> AsyncIterator[None]:
        """Wait inside for anything but an answer of the cluster: that ends with `drain`. Raises OvertakenError."""
        if self._ending:
            raise OvertakenError(ENDING)
        try:
            async with asyncio.timeout(None) as waiting:
                self._waiting.add(waiting)
                try:
                    yield
                finally:
                    self._waiting.discard(waiting)
        except TimeoutError:
            raise OvertakenError(ENDING) from None

    async def _applied(self, planned: WritePlan, rest: Sleep = asyncio.sleep) -> WriteOutcome:
        """What comes of a write that is tried again if it fails."""
        outcome, attempt = await self._apply(planned, rest), 1
        while outcome.error is not None and not outcome.lost and attempt < ATTEMPTS:
            try:
                async with self._waits():
                    await self._backoff.sleep(self._backoff.delay(attempt))
            except OvertakenError as error:
                return WriteOutcome(planned, error)
            outcome, attempt = await self._apply(planned, rest), attempt + 1
        return outcome

    async def _apply(self, planned: WritePlan, rest: Sleep) -> WriteOutcome:
        attempts = self._scheduler.cache.state.reservations.attempts
        return await apply(self._cluster, planned, self._port, rest, attempts=attempts)

    async def _reported(self, planned: WritePlan) -> WriteOutcome:
        """The same for what writes a pod's condition."""
        self._reporting[planned.pod] += 1
        try:
            return await self._applied(planned)
        finally:
            self._reporting[planned.pod] -= 1
            if not self._reporting[planned.pod]:
                del self._reporting[planned.pod]

    async def _wait(self) -> None:
        """Wait until something is heard, or a pod becomes due by time alone."""
        due = self._driver.next_time()
        seconds = LONGEST_WAIT if due is None else min(LONGEST_WAIT, max(0.0, (due - self._now()) / 1e9))
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            pass


class _SlottedPort:
    """A cluster on which each write has a slot as long as it lasts, and nothing else has.

    `waits` is what one waits for a slot in; it raises OvertakenError where nothing new is to begin.
    """

    def __init__(
        self,
        cluster: Cluster,
        slots: asyncio.Semaphore,
        waits: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self._cluster = cluster
        self._slots = slots
        self._waits = waits

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        """The object of this name."""
        async with self._waits():
            pass
        return await self._cluster.get(resource, name, namespace=namespace)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        *,
        namespace: str | None = None,
        subresource: str = "",
    ) -> Object:
        """Change an object by a patch and return it as stored."""
        async with self._waits():
            await self._slots.acquire()
        try:
            return await self._cluster.patch(
                resource, name, patch, namespace=namespace, subresource=subresource
            )
        finally:
            self._slots.release()
