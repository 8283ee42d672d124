"""`koordpolicy simulate`: a workload on virtual time, by policies that are not live yet."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from koordpolicy import resources
from koordpolicy.cli.at_flag import moment_of
from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.counted import counted
from koordpolicy.cli.output_files import put_text
from koordpolicy.cli.simulation import beside, whatif
from koordpolicy.cli.simulation.html import page
from koordpolicy.cli.simulation.made import Made
from koordpolicy.cli.simulation.pairs import ComparedPolicies, both
from koordpolicy.cli.simulation.runs import contention_of, faults_of, simulated, workload_of
from koordpolicy.cli.simulation.text import render
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.start import INTERRUPTED
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph import RuleGraph
from koordpolicy.simulator.balance_report import BALANCE_OVER_TIME
from koordpolicy.simulator.simulation import EPOCH, SimulationSettings
from koordpolicy.simulator.workload import Workload

EXAMPLE = "01-colocated-day/policies"
"""The policies that are used when none are named, below `examples/`."""


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Simulate a workload and report on it."""
    _demand_fitting(arguments)
    contention, faults = contention_of(arguments.contention), faults_of(arguments)
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
        agents=arguments.agents,
        descheduling=not arguments.without_descheduling,
        contention=contention,
        faults=faults,
    )
    if arguments.against:
        return _compare(arguments, graph, settings, terminal)
    if arguments.beside_services:
        return _beside_services(arguments, graph, settings, terminal)
    workload = workload_of(arguments, arguments.seed)
    _demand_pods(arguments.explain, workload)
    told = simulated(graph, workload, settings, arguments.seed, terminal)
    _tell_without_descheduling(told, graph, workload, settings, arguments.seed, terminal)
    told["policies"]["paths"] = arguments.policies or ["the built-in pack", f"examples/{EXAMPLE}"]
    made = _made(arguments)
    if arguments.report is not None:
        put_text(Path(arguments.report), page(told, made))
    if arguments.output == "json":
        terminal.print(json_text({**told, "made": made.data()}, indent=2))
    else:
        terminal.print(render(told, Page(terminal.width, terminal.colour()), made))
    missing = [
        name
        for name in arguments.explain
        if not any(
            name in (one["pod"], one["pod"].partition("/")[2])
            for one in (*told["explained"], *told["untried"])
        )
    ]
    for name in missing:
        terminal.say(
            f"koordpolicy simulate: no decision was made on a pod `{name}`, so there is nothing to explain"
        )
    return OK if told["interruptedAtSeconds"] is None else INTERRUPTED


def _demand_fitting(arguments: argparse.Namespace) -> None:
    """Raises CannotRunError for flags that do not go together, before anything is compiled."""
    if arguments.agents and arguments.without_colocation:
        raise CannotRunError("--agents and --without-colocation exclude each other: there agents do nothing")
    if arguments.seeds is not None and not arguments.against:
        raise CannotRunError(
            "--seeds says by how many seeds two policies are compared: say by --against PATH with which;"
            " one simulation has one seed, which --seed N says"
        )
    if arguments.against and arguments.beside_services:
        raise CannotRunError("--against and --beside-services exclude each other: each is a comparison")
    if arguments.report is not None:
        _demand_form(arguments.report, ".svg" if arguments.beside_services else ".html")
    if arguments.against and (arguments.explain or arguments.report):
        raise CannotRunError("--against excludes --explain and --report, which tell of one simulation")
    if arguments.beside_services and (arguments.explain or arguments.output == "markdown"):
        raise CannotRunError(
            "--beside-services excludes --explain and `-o markdown`, which tell of other things"
        )
    if arguments.output == "markdown" and not arguments.against:
        raise CannotRunError("`-o markdown` tells differences: say what to compare with, by `--against`")


def _made(arguments: argparse.Namespace) -> Made:
    """How a report of one seed was made."""
    return Made(arguments.command_line, (arguments.seed,))


def _tell_without_descheduling(
    told: dict[str, Any],
    graph: RuleGraph,
    workload: Workload,
    settings: SimulationSettings,
    seed: int,
    terminal: Terminal,
) -> None:
    """Where the descheduler moved pods, tell how nodes would be used without it, too."""
    told["withoutDescheduling"] = None
    if not (told["descheduling"] or {}).get("evicted") or told["interruptedAtSeconds"] is not None:
        return
    apart = replace(settings, descheduling=False, explain=())
    other = simulated(graph, workload, apart, seed, terminal, "without descheduling", again=True)
    if other["interruptedAtSeconds"] is None:
        told["withoutDescheduling"] = {
            "balance": other["balance"],
            "series": [
                {key: one[key] for key in ("fromSeconds", *BALANCE_OVER_TIME)} for one in other["series"]
            ],
        }


def _compare(
    arguments: argparse.Namespace, graph: RuleGraph, settings: SimulationSettings, terminal: Terminal
) -> int:
    """Simulate the same workloads by both policies, and tell what differs."""
    other = graph_of(arguments.against)
    if arguments.start is not None:
        other = other.at(moment_of(arguments.start))
    paths = arguments.policies or [f"examples/{EXAMPLE}"]
    policies = (
        ComparedPolicies(", ".join(arguments.against), other.digest),
        ComparedPolicies(", ".join(paths), graph.digest),
    )
    if other.digest == graph.digest and arguments.output != "json":
        terminal.print("Both are the same policies: nothing can differ, and nothing was simulated.")
        return OK
    pairs = both(arguments, (other, graph), policies, settings, terminal)
    if arguments.output == "json":
        terminal.print(json_text(whatif.found(pairs), indent=2))
    elif arguments.output == "markdown":
        terminal.print(whatif.render_markdown(pairs))
    else:
        terminal.print(whatif.render(pairs, Page(terminal.width, terminal.colour())))
    if pairs.interrupted is None:
        return OK
    terminal.say(f"koordpolicy simulate: {pairs.interrupted.text}")
    return INTERRUPTED


def _demand_form(file: str, ending: str) -> None:
    """Raises CannotRunError for a name that says another form than what is written, and, before hours are spent on what would be in
    it, for a file in a folder that is not there.
    """
    if Path(file).suffix.lower() != ending and not (ending == ".html" and file.endswith(".htm")):
        raise CannotRunError(
            f"--report writes {ending.removeprefix('.').upper()} here: name a file *{ending}, not `{file}`"
        )
    if not Path(file).parent.is_dir():
        raise CannotRunError(f"--report {file}: there is no folder {Path(file).parent}")


def _beside_services(
    arguments: argparse.Namespace, graph: RuleGraph, settings: SimulationSettings, terminal: Terminal
) -> int:
    """Simulate a workload and its services alone, and tell what everything else changes."""
    whole = workload_of(arguments, arguments.seed)
    services = replace(
        whole,
        title="services alone",
        arrivals=tuple(one for one in whole.arrivals if one.duration is None),
        span=whole.horizon(),
    )
    if not services.arrivals:
        raise CannotRunError("no pod of the workload runs on to its end, so that there are no services")
    told: dict[str, Any] = {"alone": None, "together": None}
    for part, workload, what in (
        ("alone", services, "services alone"),
        ("together", whole, "with everything"),
    ):
        told[part] = one = simulated(
            graph, workload, settings, arguments.seed, terminal, what, again=part == "together"
        )
        if one["interruptedAtSeconds"] is not None:
            _tell_what_there_is(told, what, one, arguments, terminal)
            return INTERRUPTED
    alone, together, made = told["alone"], told["together"], _made(arguments)
    if arguments.report is not None:
        put_text(Path(arguments.report), beside.picture(alone, together, made))
    if arguments.output == "json":
        terminal.print(json_text({**told, "made": made.data()}, indent=2))
    else:
        terminal.print(beside.render(alone, together, Page(terminal.width, terminal.colour()), made))
    return OK


def _tell_what_there_is(
    told: dict[str, Any], what: str, last: dict[str, Any], arguments: argparse.Namespace, terminal: Terminal
) -> None:
    """Half a comparison is none, but the day that was interrupted, as far as it came, is a report like any other."""
    made = _made(arguments)
    if arguments.output == "json":
        terminal.print(json_text({**told, "made": made.data()}, indent=2))
    else:
        terminal.print(render(last, Page(terminal.width, terminal.colour()), made))
    drawn = f", and {arguments.report} is not written" if arguments.report else ""
    terminal.say(f"koordpolicy simulate: interrupted {what}, so that nothing is compared{drawn}")


def _demand_pods(names: Sequence[str], workload: Workload) -> None:
    """Refuse to explain a pod that there is none of, before anything is simulated. Raises `CannotRunError`."""
    known = {
        name
        for arrival in workload.arrivals
        for metadata in [arrival.pod["metadata"]]
        for short in [str(metadata.get("name", ""))]
        for name in (short, f"{metadata.get('namespace') or 'default'}/{short}")
    }
    for name in names:
        if name not in known:
            close = nearest(name, known)
            meant = f"; did you mean `{close}`?" if close else ""
            raise CannotRunError(
                f"there is no pod `{name}` to explain among {counted(len(workload.arrivals), 'pod')}{meant}"
            )
