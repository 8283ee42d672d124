"""One choice of values simulated by one seed, here, in another process, or on another machine."""

import argparse
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from koordpolicy.cli.bundle import graph_of_files
from koordpolicy.cli.simulation.runs import contention_of, faults_of, simulated, workload_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import Compiler, RuleGraph
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.simulator.contention import Contention
from koordpolicy.simulator.fault_plan import FaultPlan
from koordpolicy.simulator.simulation import SimulationSettings
from koordpolicy.simulator.workload import Workload

Report = dict[str, Any]
_ASKED = (
    "nodes", "pods", "sample", "generate", "batch", "contention", "faults", "interval", "until", "agents",
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


@dataclass(frozen=True, slots=True)
class Given:
    """What the files hold that flags name; no workload where each seed draws its own."""

    workload: Workload | None
    contention: Contention | None
    faults: FaultPlan | None


def given_by(arguments: argparse.Namespace) -> Given:
    """What flags name, read. Raises `CannotRunError`."""
    return Given(
        None if arguments.generate is not None or arguments.sample != 1 else workload_of(arguments, 0),
        contention_of(arguments.contention),
        faults_of(arguments),
    )


def evaluate(job: Job, given: Given | None = None) -> Report:
    """The report of a job, of what is `given` where this machine may not have the files that flags name.

    Raises `CannotRunError`, and `KeyboardInterrupt` where it was interrupted.
    """
    arguments = argparse.Namespace(**dict(job.flags))
    if given is None:
        given = given_by(arguments)
    settings = SimulationSettings(
        arguments.interval,
        arguments.until,
        agents=arguments.agents,
        contention=given.contention,
        faults=given.faults,
    )
    workload = workload_of(arguments, job.seed) if given.workload is None else given.workload
    quiet = Terminal(io.StringIO(), io.StringIO())
    told = simulated(_graph(job.files), workload, settings, job.seed, quiet, again=True)
    if told["interruptedAtSeconds"] is not None:
        raise KeyboardInterrupt
    return {name: part for name, part in told.items() if name not in _NOT_TOLD}


@lru_cache(maxsize=2)
def _graph(files: tuple[tuple[str, str], ...]) -> RuleGraph:
    """The graph of texts; seeds of one trial come right after each other."""
    return graph_of_files(dict(files), compiler())


@cache
def compiler() -> Compiler:
    """What compiles in this process: choices differ in a value or two, and the rest is not compiled again for each."""
    return pack_remembering()
