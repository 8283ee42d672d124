"""Measuring the whole cluster at one moment."""

from collections.abc import Mapping

from koordpolicy.cluster.nodes import NodeView
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import translated_resources
from koordpolicy.model.protocol import CPU
from koordpolicy.simulator.cluster import SimulatedCluster
from koordpolicy.simulator.journal import Journal, Sample
from koordpolicy.simulator.machines import Machine


class Sampler:
    """Adds up what is known of all nodes. `names` are the overcommitted resources."""

    def __init__(self, graph: RuleGraph, cluster: SimulatedCluster, machines: Mapping[str, Machine]) -> None:
        self._cluster = cluster
        self._machines = machines
        self.names = tuple(sorted(translated_resources(graph)))

    def sample(self, time: int, seconds: float, journal: Journal) -> Sample:
        """The cluster now; `time` in nanoseconds since the beginning."""
        nodes = NodeView(self._cluster.schedulers.first.cache.table)
        offered = {name: int(nodes.amount("resources.allocatable", name).sum()) for name in self.names}
        allocated = {name: int(nodes.amount("resources.requested", name).sum()) for name in self.names}
        busy = [machine for machine in self._machines.values() if machine.pods]
        hosting = [machine for machine in busy if machine.shares.wished]
        idle = sum(machine.system_cpu for machine in self._machines.values() if not machine.pods)
        return Sample(
            time=time,
            seconds=seconds,
            used=idle + sum(machine.used for machine in busy),
            requested=int(nodes.amount("resources.requested", CPU).sum()),
            best_effort=sum(machine.shares.given for machine in hosting),
            withheld=sum(machine.shares.withheld for machine in hosting),
            hosting=len(hosting),
            suppressed=sum(machine.shares.withheld > 0 for machine in hosting),
            offered=offered,
            allocated=allocated,
            used_memory=sum(machine.used_memory for machine in self._machines.values()),
            running=sum(len(machine.pods) for machine in busy),
            pending=self._cluster.schedulers.unplaced,
        )
