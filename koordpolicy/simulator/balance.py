"""How evenly nodes are used: what a descheduler is there for, measured whether there is one or not."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.node_record import node_record
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.rules import KIND, ProfileRules
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.protocol import CPU

if TYPE_CHECKING:
    from koordpolicy.simulator.fleet import Fleet

_WHOLE: Final = 100.0


@dataclass(frozen=True, slots=True)
class Balance:
    """The CPU in use as shares of nodes: their standard deviation, the highest and the lowest of them.

    `overloaded` are the nodes above the threshold that a strategy by load has for them; None where no policy has one.
    """

    deviation: float
    highest: float
    lowest: float
    overloaded: int | None = None


EVEN: Final = Balance(0.0, 0.0, 0.0)


def at_work(graph: RuleGraph) -> list[ProfileRules]:
    """The profiles of the descheduler that have a strategy switched on. What cannot be told moves nothing."""
    found = []
    for name in graph.subjects(KIND):
        try:
            rules = ProfileRules(graph, name)
        except CelError:
            continue
        if rules.enabled and any(one.enabled for one in rules.strategies):
            found.append(rules)
    return found


def deschedules(graph: RuleGraph) -> bool:
    """Whether anything may move pods by these policies."""
    return bool(at_work(graph))


class Balancing:
    """Measures it. `graph` says which nodes are too full, as it does at the beginning (`now`); None where nothing does."""

    def __init__(self, graph: RuleGraph | None, objects: ClusterObjects, fleet: "Fleet", now: int) -> None:
        self._fleet = fleet
        self._limits = None if graph is None else _limits(graph, objects, fleet, now)

    def now(self) -> Balance:
        """As it is now."""
        fleet = self._fleet
        if not len(fleet.cpu):
            return EVEN
        shares = fleet.used / np.maximum(fleet.cpu, 1)
        limits = self._limits
        return Balance(
            float(shares.std()),
            float(shares.max()),
            float(shares.min()),
            None if limits is None else int((shares > limits).sum()),
        )


def _limits(
    graph: RuleGraph, objects: ClusterObjects, fleet: "Fleet", now: int
) -> NDArray[np.float64] | None:
    """The lowest threshold of CPU that any strategy has for a node, by machine; None where none has any."""
    found = np.full(len(fleet.machines), np.inf)
    loads = [
        one.load
        for rules in at_work(graph)
        for one in rules.strategies
        if one.enabled and one.load is not None and not one.load.by_requests
    ]
    for machine in fleet.machines if loads else ():
        sight = objects.sight(machine.name)
        if sight is None:
            continue
        facts = node_record(sight, graph.catalogue, TIMES, now)
        for load in loads:
            try:
                said = load.of_node(facts, now)
            except CelError:
                continue
            if CPU in said.high and not said.deviation:
                found[machine.index] = min(found[machine.index], said.high[CPU] / _WHOLE)
    return found if np.isfinite(found).any() else None
