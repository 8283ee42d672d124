"""What all nodes do at a report: usage → reports → suppression → overcommitment, for all of them at once.

Every decision is the components' own. Columns do what is the same for all nodes; a node of which more has changed
than what was measured is decided by itself, and so is all that policy says in a way that has no columns.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from koordpolicy.graph import RuleGraph
from koordpolicy.simulator.cluster import SimulatedCluster
from koordpolicy.simulator.fleet import Fleet
from koordpolicy.simulator.journal import Journal
from koordpolicy.simulator.machines import Machine
from koordpolicy.simulator.node_columns import NodeColumns
from koordpolicy.simulator.offering import Offering
from koordpolicy.simulator.suppressing import Suppressing


class Rounds:
    """The nodes without an agent of their own. `since` is when the simulation began, in nanoseconds since 1970."""

    def __init__(
        self, graph: RuleGraph, cluster: SimulatedCluster, fleet: Fleet, journal: Journal, since: int
    ) -> None:
        self._cluster = cluster
        self._fleet = fleet
        self._since = since
        self._columns = NodeColumns(graph, cluster.objects, fleet)
        self._suppressing = Suppressing(graph, self._columns, fleet, cluster.failures, journal)
        self._offering = Offering(
            graph,
            self._columns,
            fleet,
            cluster.overcommit,
            cluster.objects,
            cluster.failures,
            cluster.publish,
        )

    def look(self, wishes: NDArray[np.float64], reporting: Sequence[Machine], now: int) -> None:
        """Some machines report and are dealt with; `wishes` are those of all pods, by slot."""
        fleet, cluster = self._fleet, self._cluster
        places = np.array([one.index for one in reporting], np.int64)
        cluster.hear_reports(fleet.over(places))
        if not cluster.colocation:
            return
        changed = cluster.objects.take_changed()
        anew = [one for one in fleet.machines if one.name in changed.any]
        self._columns.refresh(anew, now)
        self._columns.measure()
        self._suppressing.changed(anew)
        self._suppress(wishes, reporting, now)
        self._offer(reporting, changed.beyond_pods, now)

    def _suppress(self, wishes: NDArray[np.float64], reporting: Sequence[Machine], now: int) -> None:
        fleet = self._fleet
        concerned = fleet.hosting() | (fleet.limit < fleet.cpu)
        machines = [one for one in reporting if concerned[one.index]]
        self._cluster.failures.looked_at(one.name for one in machines)
        if self._suppressing.hold(machines, now):
            fleet.share(wishes)
        self._suppressing.note(machines, now, self._since)

    def _offer(self, reporting: Sequence[Machine], changed: frozenset[str], now: int) -> None:
        """What decides about amounts beside their formulas stays as it is whoever comes to a node or leaves it."""
        offering = self._offering
        for machine in reporting:
            if machine.name in changed or not offering.plain[machine.index]:
                self._settle(machine, now)
        reported = np.zeros(len(self._fleet.machines), np.bool_)
        reported[[one.index for one in reporting]] = True
        for place in offering.decide(reported, now):
            self._settle(self._fleet.machines[place], now)

    def _settle(self, machine: Machine, now: int) -> None:
        """Decide by itself what a node offers, and make its row anew."""
        cluster = self._cluster
        cluster.objects.set_metric(self._fleet.report(machine))
        found = cluster.settle(machine.name)
        if machine.name in cluster.objects.take_changed().any:
            self._columns.refresh((machine,), now)
        self._offering.decided(machine.index, found)
