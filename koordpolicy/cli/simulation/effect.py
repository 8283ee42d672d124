"""What the change from one revision to another does in simulations, for `koordpolicy diff --simulate`."""

import argparse
from typing import Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.difference.shown import SimulatedEffect
from koordpolicy.cli.simulation import whatif
from koordpolicy.cli.simulation.pairs import ComparedPolicies, both
from koordpolicy.cli.simulation.runs import contention_of, faults_of
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.scheduler.profile import KIND as PROFILE
from koordpolicy.simulator.simulation import EPOCH, SimulationSettings

_GENERATED: Final = 20
"""Nodes that are made where nothing says what to simulate."""
_SAME: Final = "Both are the same policies: nothing can differ, and nothing was simulated."


def demand_profiles(revisions: tuple[tuple[str, RuleGraph], ...]) -> None:
    """Raise CannotRunError for a revision by which nothing places pods, before anything takes time."""
    for name, graph in revisions:
        if not graph.subjects(PROFILE):
            raise CannotRunError(
                f"--simulate: the policies of {name} have no SchedulingProfile, so nothing places pods;"
                " add one, or a pack that has one, or leave --simulate out"
            )


def simulated_effect(
    arguments: argparse.Namespace,
    before: RuleGraph,
    after: RuleGraph,
    names: tuple[str, str],
    commits: tuple[str, str],
    moment: Timestamp | None,
    terminal: Terminal,
) -> SimulatedEffect:
    """Simulate both, of commits, "" for none; `moment` is when that begins, None for when simulations do. Raises CannotRunError."""
    if before.digest == after.digest:
        return SimulatedEffect(f"{_SAME}\n", f"{_SAME}\n", None)
    settings = SimulationSettings(
        arguments.interval,
        arguments.until,
        start=EPOCH if moment is None else moment.ns,
        agents=arguments.agents,
        contention=contention_of(arguments.contention),
        faults=faults_of(arguments),
    )
    old = ComparedPolicies(names[0], before.digest, commits[0])
    new = ComparedPolicies(names[1], after.digest, commits[1])
    pairs = both(_with_workload(arguments), (before, after), (old, new), settings, terminal)
    return SimulatedEffect(
        whatif.render(pairs, Page(terminal.width, terminal.colour())),
        whatif.render_markdown(pairs),
        whatif.found(pairs),
        "" if pairs.interrupted is None else pairs.interrupted.text,
    )


def _with_workload(arguments: argparse.Namespace) -> argparse.Namespace:
    """The same with what stands for a workload where none is named: the cluster that is asked about, else one that is made."""
    if arguments.generate is not None or arguments.nodes or arguments.pods:
        return arguments
    if arguments.cluster and not arguments.batch:
        told = {"nodes": arguments.cluster, "pods": arguments.cluster}
        return argparse.Namespace(**{**vars(arguments), **told})
    return argparse.Namespace(**{**vars(arguments), "generate": (_GENERATED, None)})
