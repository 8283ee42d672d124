"""A command of ours, looked at every few milliseconds of CPU: `python -m tests.benchmarks.sampled FILE COMMAND...`.

Writes to FILE, as JSON, how many seconds of CPU went where. Each look goes to the innermost frame that the table knows.
"""

import gc
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

_EVERY: Final = 0.004
"""Seconds of CPU between two looks."""

PARTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("importlib", "", "start: import"),
    ("graph/compiler.py", "", "start: compile policies"),
    ("runtime/policies/compiling.py", "", "start: compile policies"),
    ("kube/api/connection.py", "", "start: credentials"),
    ("kube/api/codec.py", "list", "decode lists"),
    ("kube/api/watch.py", "", "decode watch events"),
    ("kube/mirror.py", "take", "take in lists"),
    ("kube/mirror.py", "apply", "take in watch events"),
    ("scheduler/scheduler.py", "schedule_next", "decide"),
    ("scheduler/decision_reporter.py", "", "metrics and Events, made"),
    ("kube/event_correlator.py", "", "Events, counted"),
    ("kube/events.py", "", "Events, written"),
    ("runtime/component.py", "observe", "metrics of requests"),
    ("scheduler/binder.py", "", "bindings, written"),
    ("scheduler/loop.py", "", "scheduling loop"),
    ("kube/api/", "", "HTTP"),
    ("aiohttp/", "", "HTTP"),
    ("asyncio/sslproto.py", "", "TLS and sockets"),
    ("asyncio/selector_events.py", "", "TLS and sockets"),
    ("asyncio/base_events.py", "_run_once", "event loop"),
)
"""Part of a file's path, function ("" for any), what its time is called; the innermost frame that fits counts."""

_REST: Final = "rest"
_ASIDE: Final = "start: compile policies"
"""What runs while the event loop waits: the one thread beside it compiles."""


class Looks:
    """Counts looks by part."""

    def __init__(self) -> None:
        self._found: Counter[str] = Counter()
        self._names: dict[CodeType, str] = {}
        self._collecting = 0.0
        self._began = 0.0
        gc.callbacks.append(self._collected)

    def look(self, _number: int, frame: FrameType | None) -> None:
        """A handler of signals."""
        if frame is not None and frame.f_code.co_name == "select":
            self._found[_ASIDE] += 1
            return
        while frame is not None:
            name = self._names.get(frame.f_code)
            if name is None:
                name = self._names[frame.f_code] = _part_of(frame.f_code)
            if name:
                self._found[name] += 1
                return
            frame = frame.f_back
        self._found[_REST] += 1

    def seconds(self) -> dict[str, float]:
        """CPU seconds by part: of all looks their share of what the process used."""
        used, looks = time.process_time(), sum(self._found.values())
        shares = {name: used * number / looks for name, number in self._found.most_common()}
        return {**shares, "of it garbage collection": self._collecting}

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        now = time.thread_time()
        if phase == "start":
            self._began = now
        else:
            self._collecting += now - self._began


def _part_of(code: CodeType) -> str:
    for path, function, name in PARTS:
        if path in code.co_filename and function in ("", code.co_name):
            return name
    return ""


def main(arguments: Sequence[str]) -> int:
    """Run the command; its exit code."""
    file, *command = arguments
    looks = Looks()
    # The event loop is told of each signal, by as much as fits, though these are none of its business.
    signal.set_wakeup_fd = partial(signal.set_wakeup_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGPROF, looks.look)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    try:
        # Its imports are to be seen, too.
        sys.argv[1:] = command
        return int(import_module("koordpolicy.cli.start").process())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        Path(file).write_text(json.dumps(looks.seconds()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
