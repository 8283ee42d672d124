"""Watches the event loop from a thread of its own: names what holds it, and ends a process that does not stop.

What holds the loop is Python, so this thread has its turns meanwhile; a single operation in C that takes long would
hold both.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Final, Self

from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.metrics import Metrics

LOG: Final = logging.getLogger(__name__)

LIMIT: Final = 2.0
"""Seconds without a beat after which the loop counts as held: far less than a lease lasts."""
_LOOK: Final = 0.25
_FRAMES: Final = 8
_ENDED: Final = 1
_NO_TURN: Final = "it was stopped, had no processor, or was in one operation in C"
_PROGRAM: Final = "<koordpolicy "
"""How the file names of generated programs begin; the module's name says which decision they answer."""


class Watchdog:
    """While it is entered, `beat` has to be called again and again by the loop, in the thread that entered it."""

    def __init__(self, metrics: Metrics, *, limit: float = LIMIT) -> None:
        self._metrics = metrics
        self._limit = limit
        self._last = monotonic()
        self._held = False
        self._deadline: float | None = None
        self._loop_thread = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._loop_thread = threading.get_ident()
        self.beat()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def beat(self) -> None:
        """The loop has its turn."""
        late, self._last = monotonic() - self._last, monotonic()
        if self._held:
            self._held = False
            LOG.warning("the event loop goes on after %.1f s", late)

    def end_within(self, seconds: float) -> None:
        """End the process as it stands where it is still there then; the first deadline holds."""
        if self._deadline is None:
            self._deadline = monotonic() + seconds

    def _watch(self) -> None:
        looked = monotonic()
        while not self._over.wait(_LOOK):
            now = monotonic()
            if now - looked > LIMIT + _LOOK:
                # Whoever kept this thread from looking kept the loop, too: what it does now is not to blame.
                self._metrics.add("koordpolicy_event_loop_held_total")
                LOG.warning("the process had no turn for %.1f s: %s", now - looked, _NO_TURN)
                self._last = now
            looked = now
            if not self._held and now - self._last > self._limit:
                self._held = True
                self._metrics.add("koordpolicy_event_loop_held_total")
                LOG.warning("the event loop is held for %.1f s by %s", now - self._last, self._holder())
            if self._deadline is not None and now > self._deadline:
                LOG.critical("the process does not stop and is ended, held by %s", self._holder())
                os._exit(_ENDED)

    def _holder(self) -> str:
        """What the loop's thread is doing: the innermost calls, outermost first."""
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the one way to see another thread
        calls = [_named(one) for one, _ in zip(_outwards(frame), range(_FRAMES), strict=False)]
        return " > ".join(reversed(calls)) or "nothing"


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _named(frame: FrameType) -> str:
    code, module = frame.f_code, frame.f_globals.get("__name__", "")
    if code.co_filename.startswith(_PROGRAM):
        return f"the policy program of {module}"
    return f"{module}.{code.co_qualname}:{frame.f_lineno}"
