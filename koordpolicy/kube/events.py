"""Events: what happened to an object, for the people who look at it.

Recording never waits and never fails: an event that repeats is counted rather than written again, many alike
become one, an object that causes too many is not heard for a while, and what does not fit into the queue is
dropped and counted. `run` writes what waits.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import (
    AlreadyExists,
    Forbidden,
    KubeError,
    NotFound,
    TooManyRequests,
    Unreachable,
)
from koordpolicy.kube.event_correlator import CorrelatedEvent, EventCorrelator, EventLimits, EventSeverity
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.kube.resources import EVENTS
from koordpolicy.model.time import NANOSECONDS, time_text

_LONGEST_NAME: Final = 253
_NO_PERMISSION: Final = 403
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry(CorrelatedEvent):
    """One event, and how much of it the cluster knows."""

    name: str = ""
    stored: bool = False
    due: bool = False
    writing: bool = False


class Recorder:
    """Writes the events of one `component`; `instance` tells its replicas apart.

    `now_ns` gives nanoseconds since 1970. Without `writes`, as in a dry run, nothing recorded is heard of. `dropped` counts what was not written, by reason.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        component: str,
        instance: str,
        now_ns: Callable[[], int],
        backoff: Backoff,
        limits: EventLimits | None = None,
        writes: bool = True,
    ) -> None:
        self.dropped: dict[str, int] = {"rate": 0, "queue": 0, "refused": 0, "unreachable": 0}
        self._cluster = cluster
        self._writes = writes
        self._ours = {
            "source": {"component": component, "host": instance},
            "reportingComponent": component,
            "reportingInstance": instance,
        }
        self._backoff = backoff
        self._limits = limits or EventLimits()
        self._correlator = EventCorrelator(_Entry, now_ns, self._limits)
        self._waiting: asyncio.Queue[_Entry] = asyncio.Queue(self._limits.queue)
        self._forbidden: set[str] = set()
        """Namespaces in which events stayed forbidden, until one is written there."""
        self._numbers = 0
        self._failed: dict[tuple[int, str], int] = {}
        """How many events failed since the last line of the log about errors of their kind."""

    def record(
        self,
        regarding: Object,
        reason: str,
        message: str,
        *,
        type: EventSeverity = "Normal",
        action: str = "",
    ) -> None:
        """See `EventRecorder`; written soon, by `run`."""
        if not self._writes:
            return
        entry = self._correlator.note(regarding, reason, message, type=type, action=action)
        if entry is None:
            self.dropped["rate"] += 1
        elif not entry.due:
            entry.due = True
            if not entry.writing:
                self._queue(entry)

    async def run(self) -> None:
        """Write what is recorded until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._limits.workers):
                group.create_task(self._work())

    def samples(self) -> Sequence[tuple[tuple[str, ...], float]]:
        """How many events were dropped, by reason, as a metric."""
        return [((reason,), number) for reason, number in self.dropped.items()]

    async def flush(self) -> None:
        """Return when nothing waits to be written any more; for the end of a process, under a time limit."""
        await self._waiting.join()

    def _queue(self, entry: _Entry) -> None:
        try:
            self._waiting.put_nowait(entry)
        except asyncio.QueueFull:
            entry.due = False
            self.dropped["queue"] += 1

    async def _work(self) -> None:
        while True:
            entry = await self._waiting.get()
            entry.due, entry.writing = False, True
            try:
                await self._write(entry)
            except Exception as error:  # noqa: BLE001  # an event is the most that this may cost
                self.dropped["refused"] += 1
                _log.error("an event about %s was not written", entry.about.get("name"), exc_info=error)
            finally:
                entry.writing = False
                if entry.due:  # it was recorded again in the meantime
                    self._queue(entry)
                self._waiting.task_done()

    async def _write(self, entry: _Entry) -> None:
        """Tell the cluster of an entry as it is now."""
        forbidden = 0
        for attempt in range(1, self._limits.attempts + 1):
            try:
                await self._send(entry)
            except AlreadyExists:
                # Names are drawn: what bears ours is ours, from an attempt whose answer was lost.
                entry.stored = attempt > 1
                if entry.stored:
                    return
                entry.name = ""
            except (Unreachable, TooManyRequests) as error:
                if attempt == self._limits.attempts:
                    self._give_up("unreachable", error)
                    return
                wait = self._backoff.delay(attempt)
                await self._backoff.sleep(max(wait, getattr(error, "retry_after", 0.0)))
            except KubeError as error:
                forbidden += 1
                if attempt == self._limits.attempts or not self._may_pass(entry, error, forbidden):
                    self._give_up("refused", error)
                    return
                await self._backoff.sleep(self._backoff.delay(forbidden))
            else:
                self._forbidden.discard(_namespace(entry))
                return

    def _may_pass(self, entry: _Entry, error: KubeError, forbidden: int) -> bool:
        """Whether a refusal is worth waiting for: a missing permission, where none has lasted, for a few attempts."""
        namespace = _namespace(entry)
        if not isinstance(error, Forbidden) or error.code != _NO_PERMISSION or namespace in self._forbidden:
            return False
        if forbidden < self._limits.forbidden:
            return True
        if len(self._forbidden) >= self._limits.remembered:
            self._forbidden.clear()
        self._forbidden.add(namespace)
        return False

    def _give_up(self, why: str, error: KubeError) -> None:
        self.dropped[why] += 1
        kind = error.code, error.reason
        if kind in self._failed:
            self._failed[kind] += 1
            return
        _log.info("an event was not written: %s", error)
        self._failed[kind] = 0
        asyncio.get_running_loop().call_later(self._limits.quiet, self._sum_up, kind, str(error))

    def _sum_up(self, kind: tuple[int, str], example: str) -> None:
        """Tell how many errors of a kind there were since the last line; none, and the next is told at once."""
        number = self._failed.pop(kind)
        if not number:
            return
        _log.info("%d more events were not written within %g s: %s", number, self._limits.quiet, example)
        self._failed[kind] = 0
        asyncio.get_running_loop().call_later(self._limits.quiet, self._sum_up, kind, example)

    async def _send(self, entry: _Entry) -> None:
        namespace = _namespace(entry)
        count, last = entry.count, _second(entry.last_ns // NANOSECONDS)
        if entry.stored:
            patch = {"count": count, "lastTimestamp": last, "message": entry.message}
            try:
                await self._cluster.patch(EVENTS, entry.name, MergePatch(patch), namespace=namespace)
            except NotFound:
                entry.stored, entry.name = False, ""  # events live an hour; this one begins again
            else:
                return
        if not entry.name:
            entry.name = self._name(entry)
        event = {
            "metadata": {"name": entry.name, "namespace": namespace},
            "involvedObject": entry.about,
            "type": entry.type,
            "reason": entry.reason,
            "message": entry.message,
            "count": count,
            "firstTimestamp": _second(entry.first_ns // NANOSECONDS),
            "lastTimestamp": last,
            **self._ours,
        }
        if entry.action:
            event["action"] = entry.action
        await self._cluster.create(EVENTS, event, namespace=namespace, echo=False)
        entry.stored = True

    def _name(self, entry: _Entry) -> str:
        """A name no other event has: the object's, the moment, and a number for events of one moment."""
        self._numbers += 1
        ending = f".{entry.last_ns:x}{self._numbers:x}"
        about: str = entry.about["name"]
        return about[: _LONGEST_NAME - len(ending)] + ending


def _namespace(entry: _Entry) -> str:
    """Where an event stands: beside its object, or in `default` where that is in no namespace."""
    return str(entry.about.get("namespace") or "default")


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    """A time as Kubernetes writes it; of the many events of one second all have the same."""
    return time_text(seconds * NANOSECONDS)
