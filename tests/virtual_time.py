"""An event loop on which waiting costs nothing: when all are asleep, the clock jumps to whoever wakes first."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Impatient(selectors.DefaultSelector):
    """Reports what is ready, and instead of waiting lets time pass."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else, for ever")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time` begins at 1000 and moves only while everybody sleeps. Nothing outside of the loop can be waited for."""

    def __init__(self) -> None:
        self._clock = _Impatient()
        super().__init__(self._clock)

    def time(self) -> float:
        return 1000.0 + self._clock.now


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run` on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
