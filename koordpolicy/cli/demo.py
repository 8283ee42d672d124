"""`koordpolicy demo`: a co-located day in the embedded cluster, and what came of it."""

import argparse
import io
from functools import partial
from importlib import import_module
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from koordpolicy import resources
from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.simulation.day import render_day
from koordpolicy.cli.simulation.forked import begun
from koordpolicy.cli.simulation.runs import simulated
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.runtime.policies.pack_cache import keep_beforehand, pack_remembering
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.simulation import SimulationSettings
from koordpolicy.simulator.traces import read_described
from koordpolicy.simulator.workload import Workload, WorkloadError

EXAMPLE = "01-colocated-day"
INTERVAL = 15 * 60 * SECOND
"""Agents report this often here: a whole day is over in half a minute."""


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Simulate the example and show its day."""
    if arguments.console:
        if arguments.explain or arguments.output != "text":
            raise CannotRunError("--console shows everything in a browser: leave --explain and --output out")
        return _in_browser(arguments, terminal)
    example = Path(arguments.example) if arguments.example else resources.examples() / EXAMPLE
    policies = example / "policies"
    try:
        workload = read_described(example / "workload.yaml", np.random.default_rng(arguments.seed))
    except WorkloadError as error:
        raise CannotRunError(str(error)) from None
    checked = not arguments.example  # ours is, wherever this program is tested
    keep_beforehand(checked=checked)
    graph = graph_of([str(policies)], pack_remembering(checked=checked), checked=checked)
    explain = (arguments.explain,) if arguments.explain else _job_at_noon(workload)

    def day(colocation: bool, shown: Terminal) -> dict[str, Any]:
        settings = SimulationSettings(INTERVAL, None, colocation=colocation, explain=explain)
        return simulated(graph, workload, settings, arguments.seed, shown, "both days at once")

    without = begun(partial(day, False, Terminal(io.StringIO(), io.StringIO())))
    together = day(True, terminal)  # which takes longer, so that its progress is that of both
    told = {"without": without(), "with": together}
    for one in told.values():
        if one["interruptedAtSeconds"] is not None:
            raise KeyboardInterrupt  # half a comparison is none
        one["policies"]["paths"] = [str(policies)]
    if arguments.output == "json":
        terminal.print(json_text(told, indent=2))
    else:
        terminal.print(
            render_day(
                told["without"], told["with"], Page(terminal.width, terminal.colour()), _shown(example)
            )
        )
        again = "koordpolicy demo --console" if which("koordpolicy") else "make demo ARGS=--console"
        terminal.say(f"the same day in a browser, node by node: `{again}`")
    return OK


def _in_browser(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """The day on the page of `koordpolicy console`, with its other flags as they are there."""
    words = ["console", f"--seed={arguments.seed}", *([arguments.example] if arguments.example else ())]
    main = import_module("koordpolicy.cli.main").main  # which knows all commands, and so this one
    return int(main(words, terminal))


def _job_at_noon(workload: Workload) -> tuple[str, ...]:
    """The first pod with an end that comes in the second half."""
    names = [
        arrival.pod["metadata"]["name"]
        for arrival in workload.arrivals
        if arrival.duration is not None and 2 * arrival.time >= workload.horizon()
    ]
    return tuple(names[:1])


def _shown(example: Path) -> str:
    """The path as it is shortest to type."""
    try:
        return str(example.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(example)
