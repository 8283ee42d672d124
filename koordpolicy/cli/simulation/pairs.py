"""Two policies simulated on the same workloads, and what is left of that where somebody interrupts it."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from koordpolicy.cli.flags.workload import DEFAULT_SEEDS
from koordpolicy.cli.simulation.made import Made
from koordpolicy.cli.simulation.runs import simulated, workload_of
from koordpolicy.cli.simulation.words import clock
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.simulator.balance import deschedules
from koordpolicy.simulator.simulation import SimulationSettings

Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ComparedPolicies:
    """One side of a comparison: what it is called, the digest of its policies, its commit where it has one."""

    name: str
    digest: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """How far a comparison came: into a seed, by the policies of a name, in seconds of its time; so many seeds were through of those asked for.

    `until` is the second up to which a seed is compared that is not through; None where all that are compared are.
    """

    seed: int
    name: str
    at: float
    through: int
    asked: int
    until: float | None = None

    @property
    def text(self) -> str:
        """In words, without what follows from it."""
        where = f"interrupted in seed {self.seed} at {clock(self.at)}, by {self.name}"
        if self.through:
            return f"{where}: what is told is of {self.through} of {self.asked} seeds"
        if self.until is not None:
            return f"{where}: what is told is of one seed up to {clock(self.until)}, which both had reached"
        return f"{where}, before both had come as far as any moment: nothing is compared"

    def data(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "seed": self.seed,
            "policies": self.name,
            "atSeconds": self.at,
            "seedsThrough": self.through,
            "seedsAsked": self.asked,
            "comparedUntilSeconds": self.until,
        }


@dataclass(frozen=True, slots=True)
class Pairs:
    """The reports of two policies on the same workloads, those at the same place of the same seed; `made` tells how."""

    policies: tuple[ComparedPolicies, ComparedPolicies]
    before: Sequence[Report]
    after: Sequence[Report]
    made: Made
    interrupted: Interrupted | None = None

    @property
    def names(self) -> tuple[str, str]:
        """What both are called."""
        return self.policies[0].name, self.policies[1].name


@dataclass(slots=True)
class _Seed:
    """One seed on its way: what is through of it, and what both reached, by nanoseconds of its time."""

    found: list[Report] = field(default_factory=list)
    reached: tuple[dict[int, Report], dict[int, Report]] = field(default_factory=lambda: ({}, {}))
    name: str = ""
    at: float = 0.0

    def together(self) -> list[Report]:
        """The reports of both of the last moment that both reached; none where there is none."""
        one, other = self.reached
        moment = max(one.keys() & other.keys(), default=None)
        return [] if moment is None else [one[moment], other[moment]]


def both(
    arguments: argparse.Namespace,
    graphs: tuple[RuleGraph, RuleGraph],
    policies: tuple[ComparedPolicies, ComparedPolicies],
    settings: SimulationSettings,
    terminal: Terminal,
) -> Pairs:
    """Simulate both on the workload of each seed. Raises CannotRunError.

    An interrupt leaves the seeds that are through; in the first one, the last of the moments looked at that both reached.
    """
    # Both are measured alike, by the one that says which nodes are too full.
    before, after = graphs
    settings = replace(settings, balance_by=after if deschedules(after) else before)
    asked = range(arguments.seed, arguments.seed + (arguments.seeds or DEFAULT_SEEDS))
    through: tuple[list[Report], list[Report]] = ([], [])
    interrupted: Interrupted | None = None
    for seed in asked:
        one = _Seed()
        try:
            _simulate(one, seed, arguments, graphs, policies, settings, terminal, first=seed == asked[0])
        except KeyboardInterrupt:
            told = [] if through[0] else one.together()
            until = told[0]["interruptedAtSeconds"] if told else None
            interrupted = Interrupted(seed, one.name, one.at, len(through[0]), len(asked), until)
            one.found = told
        if one.found:
            for side, report in zip(through, one.found, strict=True):
                side.append(report)
        if interrupted is not None:
            break
    seeds = tuple(asked[: len(through[0])])
    return Pairs(policies, *through, Made(arguments.command_line, seeds), interrupted)


def _simulate(
    one: _Seed,
    seed: int,
    arguments: argparse.Namespace,
    graphs: tuple[RuleGraph, RuleGraph],
    policies: tuple[ComparedPolicies, ComparedPolicies],
    settings: SimulationSettings,
    terminal: Terminal,
    *,
    first: bool,
) -> None:
    """Simulate a seed by both. Raises KeyboardInterrupt, after it noted how far it came, and CannotRunError."""
    one.name = policies[0].name
    workload = workload_of(arguments, seed)
    for side, graph, reached in zip(policies, graphs, one.reached, strict=True):
        one.name, one.at = side.name, 0.0
        told = simulated(
            graph, workload, settings, seed, terminal, f"seed {seed}, {side.name}",
            again=not first or bool(one.found), reached=reached if first else None,
        )  # fmt: skip
        if told["interruptedAtSeconds"] is not None:
            one.at = told["interruptedAtSeconds"]
            raise KeyboardInterrupt
        one.found.append(told)
