"""Where jobs are done: in this process, in some beside it, or on a cluster (`dask_cluster`)."""

import signal
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from koordpolicy.cli.command import CannotRunError


class EngineLostError(CannotRunError):
    """What does the jobs is gone: no job can be done any more, whatever its values are."""


class Engine(Executor):
    """Does jobs. `trials` is how many trials are in work at a time unless somebody says another number."""

    trials: int = 1

    @abstractmethod
    def outcome(self, future: Future[Any]) -> Any:
        """What became of a job that was submitted, waited for if need be.

        Raises `EngineLostError` where no job can be done any more, and `CannotRunError` for this one.
        """

    def demand_sound(self) -> None:
        """Raise `EngineLostError` where what was submitted will never be done."""


class Here(Engine):
    """Does what is submitted at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done already; an interrupt goes on upwards."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except CannotRunError as error:
            future.set_exception(error)
        return future

    def outcome(self, future: Future[Any]) -> Any:
        return future.result()


class Processes(ProcessPoolExecutor, Engine):
    """So many processes beside this one."""

    def __init__(self, count: int) -> None:
        super().__init__(count, mp_context=get_context("spawn"), initializer=_leave_interrupts)
        self.trials = count

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future of what a process does. Raises `EngineLostError` where one has died."""
        try:
            return super().submit(fn, *args, **kwargs)
        except BrokenExecutor:
            raise _died() from None

    def outcome(self, future: Future[Any]) -> Any:
        try:
            return future.result()
        except BrokenExecutor:
            raise _died() from None


def _died() -> EngineLostError:
    return EngineLostError(
        "a process that simulates has died, which most often is for want of memory: fewer --jobs need less"
    )


def engine(jobs: int | None) -> Engine:
    """Where jobs are done on this machine: in so many processes, or here without a number."""
    return Here() if jobs in (None, 1) else Processes(jobs)


def _leave_interrupts() -> None:
    """An interrupt is for the process that hands out the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
