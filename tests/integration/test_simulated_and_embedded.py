"""The same workload on the simulator's clock and in the embedded cluster: pods go to the same nodes, in the same order."""

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.simulation import Simulation, SimulationSettings
from koordpolicy.simulator.workload import Arrival, Wave, Workload
from tests.integration.embedded import Decided, embedded, noting
from tests.integration.simulations import graph_with, node, pod

SPAN = 290 * SECOND
"""Before a pod that waits is tried in any case: simulations do so with the reports alone."""

# Reports of nodes are none of the scheduler's business here: in the embedded cluster nobody makes any.
GRAPH = graph_with(
    "apiVersion: koordpolicy.io/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: own}\n"
    "spec:\n  schedulerName: koord-scheduler\n"
    "  filters: [{name: LoadAwareScheduling, enabled: false}]\n"
    "  scores: [{name: LoadAwareScheduling, enabled: false}]\n"
)


class NoChance:
    """Always the first, and nothing ever differs."""

    def normal(self, loc: float, scale: Any, size: int | None = None) -> Any:
        return loc if size is None else np.full(size, loc)

    def random(self) -> float:
        return 0.5

    def integers(self, low: int, high: int) -> int:
        return low


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Full nodes, pods of different priority that come and go. No two things happen at one moment by arrangement."""
    arrivals = []
    for number in range(draw(st.integers(1, 6))):
        asked = pod(f"p{number}", str(draw(st.sampled_from([3, 8, 9, 16]))))
        asked["spec"]["schedulerName"] = "koord-scheduler"
        asked["spec"]["priorityClassName"] = f"c{draw(st.integers(0, 2))}"
        asked["spec"]["terminationGracePeriodSeconds"] = draw(st.sampled_from([0, 2, 30, 45]))
        at = (number + draw(st.integers(0, 8)) * 20) * SECOND + (number + 1) * 10**7
        runs = draw(st.none() | st.sampled_from([25, 70, 200]))
        arrivals.append(Arrival(at, asked, None if runs is None else runs * SECOND, Wave(0.1, 0.1)))
    classes = [
        {"kind": "PriorityClass", "metadata": {"name": f"c{at}"}, "value": 9000 + at} for at in range(3)
    ]
    nodes = [node(f"n{at}") for at in range(draw(st.integers(1, 2)))]
    ordered = sorted(arrivals, key=lambda one: one.time)
    return Workload(tuple(nodes), tuple(ordered), objects=tuple(classes), span=SPAN)


def simulated(workload: Workload) -> tuple[list[Decided], dict[str, str]]:
    made = Simulation(GRAPH, workload, SimulationSettings(2 * SPAN, colocation=False), NoChance())
    decided: list[Decided] = []
    made.cluster.schedulers.first.on_decided = noting(decided, lambda: made.agenda.now)
    made.run()
    return decided, {one.name: one.node_name for one in made.cluster.objects.pods.values()}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workloads())
def test_pods_go_to_the_same_nodes_at_the_same_time(workload: Workload) -> None:
    assert simulated(workload) == embedded(GRAPH, workload)
