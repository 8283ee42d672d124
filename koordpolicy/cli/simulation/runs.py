"""Simulations that commands run: of which workload, with progress on the terminal."""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.simulation.words import clock, length
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import KubeError
from koordpolicy.runtime.collector import collect
from koordpolicy.scheduler.profile import ProfileError
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.contention import Contention, read_contention
from koordpolicy.simulator.fault_plan import FaultPlan, read_faults
from koordpolicy.simulator.journal import Journal
from koordpolicy.simulator.report import report
from koordpolicy.simulator.simulation import Simulation, SimulationSettings
from koordpolicy.simulator.traces import read_workload
from koordpolicy.simulator.traces.published import published_workload
from koordpolicy.simulator.workload import Workload, WorkloadError

_UPDATES_A_SECOND = 10
_PARTS: Final = 6
"""How often a simulation is looked at that may have to be told of before it is over: each look reads all of its pods."""


def workload_of(arguments: argparse.Namespace, seed: int) -> Workload:
    """The workload that is asked for, of a seed where it is drawn. Raises `CannotRunError`."""
    files = (arguments.nodes, arguments.pods)
    if arguments.generate is not None:
        if any(files):
            raise CannotRunError("--generate and files of nodes and pods exclude each other")
        if arguments.sample != 1:
            raise CannotRunError(
                "--sample is for pods of a file: say how many are made, as `--generate 100:1000`"
            )
        nodes, pods = arguments.generate
        chance = np.random.default_rng(seed)
        return published_workload(nodes, pods, chance, batch=arguments.batch)
    if arguments.batch:
        raise CannotRunError("--batch is for a workload that is made: add `--generate N`")
    if not all(files):
        raise CannotRunError(
            "say what to simulate: `--nodes FILE --pods FILE` (the same file for both, where it has both), or `--generate N`"
        )
    try:
        chosen = None if arguments.sample == 1 else np.random.default_rng(seed)
        return read_workload(Path(arguments.nodes), Path(arguments.pods), arguments.sample, chosen)
    except WorkloadError as error:
        raise CannotRunError(str(error)) from None


def faults_of(arguments: argparse.Namespace) -> FaultPlan | None:
    """What is to go wrong; None where nothing is. Raises `CannotRunError`."""
    if arguments.faults is None:
        return None
    try:
        return read_faults(Path(arguments.faults))
    except WorkloadError as error:
        raise CannotRunError(str(error)) from None


def contention_of(file: str | None) -> Contention | None:
    """The parameters in a file; None where none is named. Raises `CannotRunError`."""
    if file is None:
        return None
    try:
        return read_contention(Path(file))
    except WorkloadError as error:
        raise CannotRunError(str(error)) from None


def simulated(
    graph: RuleGraph,
    workload: Workload,
    settings: SimulationSettings,
    seed: int,
    terminal: Terminal,
    what: str = "simulating",
    *,
    again: bool = False,
    reached: dict[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The report of one run with progress on the terminal, `wallSeconds` included; CannotRunError.

    `again` says that one was simulated before in this process: its objects make room first. In `reached` come reports of some
    moments on the way, by nanoseconds since the beginning; they are the same moments in all simulations of one length and interval.
    """
    if again:
        collect()
    began = time.monotonic()
    if settings.faults is not None:
        settings = replace(settings, faults=replace(settings.faults, seed=seed))
    tell = _progress(terminal, workload, what)

    def look(passed: int, whole: int, journal: Journal) -> None:
        tell(passed, whole, journal)
        if reached is not None and passed < whole and passed * _PARTS // whole > len(reached):
            reached[passed] = report(simulation, passed)

    try:
        simulation = Simulation(graph, workload, settings, np.random.default_rng(seed), look)
        simulation.run()
    except (WorkloadError, ProfileError, KubeError) as error:
        raise CannotRunError(str(error)) from None
    finally:
        terminal.end_progress()
    return {**report(simulation), "wallSeconds": round(time.monotonic() - began, 1)}


def _left(spent: float, share: float) -> str:
    """How long it will take yet, once that can be told."""
    return f", {length(spent * (1 - share) / share)} left" if spent >= 1 and 0 < share < 1 else ""


def _progress(terminal: Terminal, workload: Workload, what: str) -> Callable[[int, int, Journal], None]:
    began = terminal.now()
    told = began - 1 / _UPDATES_A_SECOND

    def tell(passed: int, whole: int, journal: Journal) -> None:
        nonlocal told
        now = terminal.now()
        if now - told < 1 / _UPDATES_A_SECOND:
            return
        told = now
        share = passed / whole if whole else 1.0
        done = round(20 * share)
        pods = f"{journal.arrived:,} of {len(workload.arrivals):,} pods"
        left = _left(now - began, share)
        terminal.progress(
            f"{what} {'━' * done}{' ' * (20 - done)} {100 * share:3.0f} %  {pods}  {length(now - began)}{left}",
            f"{what}: at {clock(passed / SECOND)}, {100 * share:.0f} % of {length(whole / SECOND)}, {pods}{left}",
        )

    return tell
