"""One choice of values simulated by one seed, here or in another process."""

import argparse
import io
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

from koordpolicy.cli.bundle import graph_of_files
from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.simulation.runs import contention_of, faults_of, simulated, workload_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.simulator.simulation import SimulationSettings

Report = dict[str, Any]
_ASKED = (
    "nodes", "pods", "generate", "batch", "contention", "faults", "interval", "until", "agents",
)  # fmt: skip
_NOT_TOLD = ("series", "explained", "untried", "events", "wallSeconds")
"""Parts of a report that no comparison reads."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is simulated: policies by their texts, a day, a seed."""

    files: tuple[tuple[str, str], ...]
    flags: tuple[tuple[str, Any], ...]
    seed: int


def job_of(files: Mapping[str, str], arguments: argparse.Namespace, seed: int) -> Job:
    """The job of a choice; the same texts, flags and seed give the same report wherever it is done."""
    flags = tuple((name, getattr(arguments, name)) for name in _ASKED)
    return Job(tuple(sorted(files.items())), flags, seed)


def evaluate(job: Job) -> Report:
    """The report of a job. Raises `CannotRunError`, and `KeyboardInterrupt` where it was interrupted."""
    arguments = argparse.Namespace(**dict(job.flags))
    settings = SimulationSettings(
        arguments.interval,
        arguments.until,
        agents=arguments.agents,
        contention=contention_of(arguments.contention),
        faults=faults_of(arguments),
    )
    quiet = Terminal(io.StringIO(), io.StringIO())
    told = simulated(_graph(job.files), workload_of(arguments, job.seed), settings, job.seed, quiet)
    if told["interruptedAtSeconds"] is not None:
        raise KeyboardInterrupt
    return {name: part for name, part in told.items() if name not in _NOT_TOLD}


@lru_cache(maxsize=2)
def _graph(files: tuple[tuple[str, str], ...]) -> RuleGraph:
    """The graph of texts; seeds of one trial come right after each other."""
    return graph_of_files(dict(files))


class Here(Executor):
    """Does what is submitted at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done already; an interrupt goes on upwards."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except CannotRunError as error:
            future.set_exception(error)
        return future


def engine(jobs: int) -> Executor:
    """Where jobs are done: here, or in so many processes beside this one."""
    if jobs == 1:
        return Here()
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_leave_interrupts)


def _leave_interrupts() -> None:
    """An interrupt is for the process that hands out the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
