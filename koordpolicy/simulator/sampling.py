"""Measuring the whole cluster at one moment."""

from koordpolicy.cluster.nodes import NodeView
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import translated_resources
from koordpolicy.model.protocol import CPU
from koordpolicy.simulator.answering import Answers
from koordpolicy.simulator.balance import Balancing
from koordpolicy.simulator.cluster import SimulatedCluster
from koordpolicy.simulator.fleet import Fleet
from koordpolicy.simulator.journal import Journal, Sample


class Sampler:
    """Adds up what is known of all nodes. `names` are the overcommitted resources."""

    def __init__(
        self, graph: RuleGraph, cluster: SimulatedCluster, fleet: Fleet, balancing: Balancing
    ) -> None:
        self._cluster = cluster
        self._fleet = fleet
        self._balancing = balancing
        self.names = tuple(sorted(translated_resources(graph)))

    def sample(self, time: int, seconds: float, journal: Journal, answers: Answers) -> Sample:
        """The cluster now; `time` in nanoseconds since the beginning."""
        nodes = NodeView(self._cluster.schedulers.first.cache.table)
        offered = {name: int(nodes.amount("resources.allocatable", name).sum()) for name in self.names}
        allocated = {name: int(nodes.amount("resources.requested", name).sum()) for name in self.names}
        fleet = self._fleet
        hosting, withheld = fleet.wished > 0, fleet.withheld
        return Sample(
            time=time,
            seconds=seconds,
            used=int(fleet.used.sum()),
            requested=int(nodes.amount("resources.requested", CPU).sum()),
            best_effort=int(fleet.given[hosting].sum()),
            withheld=int(withheld[hosting].sum()),
            hosting=int(hosting.sum()),
            suppressed=int((withheld[hosting] > 0).sum()),
            short=int(fleet.short.sum()),
            finished=journal.finished,
            offered=offered,
            allocated=allocated,
            used_memory=int(fleet.held_memory().sum()),
            running=fleet.pods,
            pending=self._cluster.schedulers.unplaced,
            answers=answers,
            balance=self._balancing.now(),
        )
