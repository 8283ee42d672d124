"""Free CPU that lies in pieces: how much of it is of no use to a usual pod."""

from collections.abc import Sequence
from statistics import median_high

from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import CPU
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.simulator.simulation import Simulation


def fragmentation(simulation: Simulation) -> dict[str, float]:
    """Free CPU at the end, in cores, and the share of it that is stranded: pieces cut from each node are as large as
    the median request of the workload, and what is left of each node is too small for one more.
    """
    nodes = NodeView(simulation.cluster.schedulers.first.cache.table)
    free = nodes.amount("resources.allocatable", CPU) - nodes.amount("resources.requested", CPU)
    return _pieces([max(int(one), 0) for one in free.tolist()], _median_request(simulation))


def _pieces(free: Sequence[int], piece: int) -> dict[str, float]:
    whole = sum(free)
    stranded = sum(one % piece for one in free) if piece else 0
    return {
        "freeCores": whole / 1000,
        "pieceCores": piece / 1000,
        "stranded": stranded / whole if whole else 0.0,
    }


def _median_request(simulation: Simulation) -> int:
    """Millicores that the middle one of all pods that ask for CPU asks for; 0 without any."""
    asked = []
    for arrival in simulation.workload.arrivals:
        pod = readable(read_pod, arrival.pod)
        if not isinstance(pod, Unreadable) and (cpu := effective_requests(pod).get(CPU, 0)) > 0:
            asked.append(cpu)
    return median_high(asked) if asked else 0
