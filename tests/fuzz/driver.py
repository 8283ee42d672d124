"""Runs a target over inputs, one after another, each under a limit of time."""

import faulthandler
import os
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from tests.fuzz.target import Defect, Target

FOUND = Path(__file__).parent / "found"
GROWTH = 400 << 20
"""Bytes that memory may grow over a run: caches are bounded, whatever comes in."""
_STATM = Path("/proc/self/statm")
_WARM = 500
_LOOK = 500
_MOST = 20
"""Defects after which a run ends: one cause has many inputs."""


def resident() -> int:
    """Bytes of memory that this process really holds, 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


class Hang(BaseException):
    """An input took too long. No `Exception`, so that nothing on the way takes it for one."""


@dataclass(slots=True)
class Found:
    """An input that shows a defect, and what came out of it."""

    data: bytes
    trace: str

    @property
    def cause(self) -> str:
        """What tells causes apart: the error and where it was raised."""
        lines = self.trace.strip().splitlines()
        places = [line.strip() for line in lines if line.startswith("  File ")]
        return f"{lines[-1].split(':')[0]} {places[-1] if places else ''}"


@dataclass(slots=True)
class Totals:
    """What a run came to. `slowest` in seconds, `growth` in bytes."""

    inputs: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_input: bytes = b""
    growth: int = 0
    found: dict[str, Found] = field(default_factory=dict)


def run_one(target: Target, data: bytes) -> None:
    """Run one input. Raises what shows a defect, `Hang` included."""
    with _limited(target.limit):
        target.run(data)


def run(target: Target, seconds: float, count: int, seed: int) -> Totals:
    """Run for so long, or so many inputs, whatever ends first; the same seed draws the same inputs."""
    chance, seeds, totals = Random(seed), target.seeds(), Totals()
    began, start = time.perf_counter(), 0
    while totals.inputs < count and totals.seconds < seconds and len(totals.found) < _MOST:
        data = seeds[totals.inputs] if totals.inputs < len(seeds) else target.mutate(chance, seeds)
        before = time.perf_counter()
        try:
            run_one(target, data)
        except (Exception, Hang):  # noqa: BLE001 - whatever it is, it is what is looked for
            found = Found(data, traceback.format_exc())
            totals.found.setdefault(found.cause, found)
        now = time.perf_counter()
        if now - before > totals.slowest:
            totals.slowest, totals.slowest_input = now - before, data
        totals.inputs += 1
        totals.seconds = now - began
        if totals.inputs == max(_WARM, len(seeds)):
            start = resident()
        elif start and totals.inputs % _LOOK == 0:
            totals.growth = resident() - start
            if totals.growth > GROWTH:
                found = Found(data, f"memory grew by {totals.growth:,} bytes over {totals.inputs:,} inputs")
                totals.found["growth"] = found
                break
    return totals


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `Hang` past the time; where not even that gets through, say where it hangs and end the process."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + 30, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def kept(name: str) -> list[Path]:
    """Inputs that showed a defect once."""
    folder = FOUND / name
    return sorted(folder.iterdir()) if folder.is_dir() else []


__all__ = ["Defect", "Found", "Hang", "Totals", "kept", "run", "run_one"]
