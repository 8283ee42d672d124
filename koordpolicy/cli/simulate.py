"""`koordpolicy simulate`: a workload on virtual time, by policies that are not live yet."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from koordpolicy import resources
from koordpolicy.cli.at_flag import moment_of
from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import OK, CannotRunError, Command
from koordpolicy.cli.simulation.text import render
from koordpolicy.cli.simulation.words import Page, length
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import KubeError
from koordpolicy.model.time import parse_duration
from koordpolicy.scheduler.profile import ProfileError
from koordpolicy.simulator.journal import Journal
from koordpolicy.simulator.report import report
from koordpolicy.simulator.simulation import EPOCH, Simulation, SimulationSettings
from koordpolicy.simulator.traces import read_workload
from koordpolicy.simulator.workload import Workload, WorkloadError

EXAMPLE = "01-colocated-day/policies"
"""The policies that are used when none are named, below `examples/`."""

_UPDATES_A_SECOND = 10


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--nodes",
        metavar="FILE",
        required=True,
        help="nodes: openb CSV, what `kubectl get -o json|yaml` prints (claims, volumes, budgets, ... too), or a snapshot",
    )
    parser.add_argument("--pods", metavar="FILE", required=True, help="pods, in the same formats")
    parser.add_argument(
        "-p",
        "--policies",
        metavar="PATH",
        action="append",
        default=[],
        help="file or directory of policies; may be repeated; without, the built-in pack with the example's profiles",
    )
    parser.add_argument(
        "-o", "--output", choices=["text", "json"], default="text", help="format of the report"
    )
    parser.add_argument(
        "--interval",
        metavar="D",
        type=_duration,
        help="time between the reports of agents (default: 2m up to two days)",
    )
    parser.add_argument(
        "--until", metavar="D", type=_duration, help="how long to simulate (default: all of it)"
    )
    parser.add_argument(
        "--start",
        metavar="TIME",
        help="the moment at which it begins, as `2026-07-01T18:00:00Z` or `2026-07-01`, for policies that read `now`,"
        " and the PolicyExceptions in force then (default: 2020-01-01, and none)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="seed of all chance (default: 1)")
    parser.add_argument(
        "--explain",
        metavar="POD",
        action="append",
        default=[],
        help="explain the placement of this pod, or why it is pending at the end; repeatable",
    )
    parser.add_argument(
        "--without-colocation",
        action="store_true",
        help="the same workload without profiles, overcommit, suppression",
    )


def _duration(text: str) -> int:
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if length <= 0:
        raise argparse.ArgumentTypeError(f"`{text}` is not more than nothing")
    return length


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    paths = arguments.policies or [str(resources.examples() / EXAMPLE)]
    graph = graph_of(paths)
    start = EPOCH
    if arguments.start is not None:
        moment = moment_of(arguments.start)
        graph, start = graph.at(moment), moment.ns
    settings = SimulationSettings(
        arguments.interval,
        arguments.until,
        colocation=not arguments.without_colocation,
        explain=tuple(arguments.explain),
        start=start,
    )
    try:
        workload = read_workload(Path(arguments.nodes), Path(arguments.pods))
    except WorkloadError as error:
        raise CannotRunError(str(error)) from None
    told = simulated(graph, workload, settings, arguments.seed, terminal)
    told["policies"]["paths"] = arguments.policies or ["the built-in pack", f"examples/{EXAMPLE}"]
    if arguments.output == "json":
        terminal.print(json_text(told, indent=2))
    else:
        terminal.print(render(told, Page(terminal.width, terminal.colour())))
    missing = [
        name
        for name in arguments.explain
        if not any(name in (one["pod"], one["pod"].partition("/")[2]) for one in told["explained"])
    ]
    for name in missing:
        terminal.say(
            f"koordpolicy simulate: no decision was made on a pod `{name}`, so there is nothing to explain"
        )
    return OK


def simulated(
    graph: RuleGraph,
    workload: Workload,
    settings: SimulationSettings,
    seed: int,
    terminal: Terminal,
    what: str = "simulating",
) -> dict[str, Any]:
    """The report of one run with progress on the terminal, `wallSeconds` included; CannotRunError."""
    began = time.monotonic()
    try:
        simulation = Simulation(
            graph, workload, settings, np.random.default_rng(seed), _progress(terminal, workload, what)
        )
        simulation.run()
    except (WorkloadError, ProfileError, KubeError) as error:
        raise CannotRunError(str(error)) from None
    finally:
        terminal.end_progress()
    return {**report(simulation), "wallSeconds": round(time.monotonic() - began, 1)}


def _progress(terminal: Terminal, workload: Workload, what: str) -> Callable[[int, int, Journal], None]:
    began = time.monotonic()
    told = 0.0

    def tell(passed: int, whole: int, journal: Journal) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told < 1 / _UPDATES_A_SECOND:
            return
        told = now
        share = passed / whole if whole else 1.0
        done = round(20 * share)
        terminal.progress(
            f"{what} {'━' * done}{' ' * (20 - done)} {100 * share:3.0f} %  {journal.arrived:,} of"
            f" {len(workload.arrivals):,} pods  {length(now - began)}"
        )

    return tell


COMMAND = Command(_add, _run, epilog="exit code: 0 simulated to the end, 2 could not run")
