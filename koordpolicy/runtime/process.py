"""The frame of a long-running process: signals, tasks, readiness, and a stop that ends in time."""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Final, Self

from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.watchdog import Watchdog

if sys.platform != "win32":
    import uvloop

LOG: Final = logging.getLogger(__name__)

OK: Final = 0
CRASHED: Final = 1
CANNOT_START: Final = 2

GRACE: Final = 25.0
"""Seconds that a stop may take: less than the 30 that Kubernetes gives a pod."""
_LAST: Final = 2.0
"""Seconds after that in which a process that cannot even be cancelled is ended as it stands."""
_BEAT: Final = 0.5
_TURN: Final = 0.0005
"""Seconds that a thread may run while others wait: a revision is compiled beside decisions, not before them."""


class CannotStart(Exception):
    """The process cannot do its work as it was started; the message says why and what to do (exit code 2)."""


class CannotFinish(Exception):
    """What the process was started to do once cannot be done; the message says why and what to do (exit code 1)."""


@dataclass(slots=True)
class Readiness:
    """Conditions by name that must all hold before the process counts as ready: None, or why it does not hold."""

    metrics: Metrics
    conditions: dict[str, str | None] = field(default_factory=dict)

    def wait_for(self, condition: str, why: str) -> None:
        """The condition does not hold, or not any more."""
        self.conditions[condition] = why
        self.metrics.set("koordpolicy_ready", 0, condition=condition)

    def reached(self, condition: str) -> None:
        """The condition holds."""
        self.conditions[condition] = None
        self.metrics.set("koordpolicy_ready", 1, condition=condition)

    @property
    def missing(self) -> dict[str, str]:
        """The conditions that do not hold, and why."""
        return {name: why for name, why in self.conditions.items() if why is not None}


class StatusPage:
    """What `/statusz` shows of the parts of a process; each adds its own when it is there."""

    def __init__(self) -> None:
        self._parts: list[Callable[[], Mapping[str, Any]]] = []

    def add(self, part: Callable[[], Mapping[str, Any]]) -> None:
        """Show what a part says of itself, as JSON values by name, after what is shown already."""
        self._parts.append(part)

    def told(self) -> dict[str, Any]:
        """All of it, as it is now."""
        return {name: value for part in self._parts for name, value in part().items()}


class Tasks:
    """Work that runs beside a block: what it raises ends the block, and the block's end cancels it, last first."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            for task in reversed(self._tasks):
                task.cancel()
                await asyncio.wait([task])
        await self._group.__aexit__(kind, error, trace)

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something beside."""
        task = self._group.create_task(work, name=name)
        self._tasks.append(task)
        return task


class Process:
    """What a component is given to live in: its name, its metrics, and the word to stop.

    `instance` tells replicas of one component apart: the pod's name, or the host's.
    """

    def __init__(self, component: str, instance: str, metrics: Metrics) -> None:
        self.component = component
        self.instance = instance
        self.metrics = metrics
        self.readiness = Readiness(metrics)
        self.status = StatusPage()
        self.started = monotonic()
        self.address: tuple[str, int] | None = None
        self._stopping = asyncio.Event()

    @property
    def stopping(self) -> bool:
        """Whether the process has been told to stop."""
        return self._stopping.is_set()

    async def stopped(self) -> None:
        """Return when the process is told to stop."""
        await self._stopping.wait()

    async def before_stop(self, work: Coroutine[Any, Any, Any]) -> bool:
        """Do something that may take long; false when the process was told to stop before it was done, which ends it.

        Raises what the work raises.
        """
        doing, told = asyncio.create_task(work), asyncio.create_task(self.stopped())
        try:
            await asyncio.wait((doing, told), return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
            if ended := doing.done():
                doing.result()
            doing.cancel()
        return ended

    def stop(self, why: str) -> None:
        """Tell the process to stop."""
        if not self.stopping:
            LOG.info("stopping: %s", why)
            self.readiness.wait_for("running", "the process is stopping")
            self._stopping.set()

    def note_address(self, host: str, port: int) -> None:
        """Remember, and log, where the process's server listens."""
        self.address = (host, port)
        LOG.info("serving on %s:%d", host, port)

    async def run(self, main: Callable[["Process"], Awaitable[None]], watchdog: Watchdog) -> None:
        """Run `main`. Raises what it or one of its tasks raises, perhaps in an ExceptionGroup."""
        async with Tasks() as tasks:
            tasks.start("beat", self._beat(watchdog))
            await main(self)

    async def _beat(self, watchdog: Watchdog) -> None:
        """Measure how late the loop runs what is due."""
        while True:
            due = monotonic() + _BEAT
            await asyncio.sleep(_BEAT)
            watchdog.beat()
            self.metrics.observe("koordpolicy_event_loop_delay_seconds", max(0.0, monotonic() - due))


def run_process(
    main: Callable[[Process], Awaitable[None]],
    component: str,
    instance: str,
    *,
    metrics: Metrics | None = None,
    grace: float = GRACE,
) -> int:
    """Run a process until it is told to stop, and give its exit code: 0 stopped, 1 failed, 2 could not start.

    `main` sets things up, starts tasks, waits for `Process.stopped` and takes down in order. SIGTERM and SIGINT
    tell it to stop; a second one, or `grace` seconds, cancels it where it stands. One whose event loop is held then
    is ended.
    """
    sys.setswitchinterval(_TURN)
    with asyncio.Runner(loop_factory=_event_loop) as runner:
        known = metrics or Metrics(component)
        with Watchdog(known) as watchdog:
            return runner.run(_supervised(main, Process(component, instance, known), watchdog, grace))


def _event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, which spends half as much on sockets and TLS; asyncio's own where there is none."""
    return asyncio.new_event_loop() if sys.platform == "win32" else uvloop.new_event_loop()


async def _supervised(
    main: Callable[[Process], Awaitable[None]], process: Process, watchdog: Watchdog, grace: float
) -> int:
    whole = asyncio.create_task(process.run(main, watchdog), name=process.component)
    loop = asyncio.get_running_loop()

    def told(name: str) -> None:
        if process.stopping:
            whole.cancel()
        else:
            process.stop(name)
            loop.call_later(grace, _too_late, whole, grace)

    def interrupted(number: int, _: FrameType | None) -> None:
        # Python runs this between two steps of whatever holds the loop, which the loop's own handlers would wait for.
        watchdog.end_within(grace + _LAST)
        loop.call_soon_threadsafe(told, signal.Signals(number).name)

    before = {number: signal.signal(number, interrupted) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([whole])
        return _outcome(whole, process)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _too_late(whole: asyncio.Task[None], grace: float) -> None:
    if not whole.done():
        LOG.warning("the stop took more than %.0f s and is cut short", grace)
        whole.cancel()


def _outcome(whole: asyncio.Task[None], process: Process) -> int:
    if whole.cancelled():
        return CRASHED
    error = whole.exception()
    if error is None:
        LOG.info("stopped")
        return OK
    cause = _cause(error)
    if isinstance(cause, CannotStart):
        LOG.error("%s cannot start: %s", process.component, cause)
        return CANNOT_START
    if cause is not None:
        LOG.error("%s ends: %s", process.component, cause)
        return CRASHED
    LOG.critical("%s failed", process.component, exc_info=error)
    return CRASHED


def _cause(error: BaseException) -> CannotStart | CannotFinish | None:
    """What people are told in words, without a traceback."""
    if isinstance(error, CannotStart | CannotFinish):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((cause for one in error.exceptions if (cause := _cause(one)) is not None), None)
    return None
