"""What the console tells of pods that were on a node and are there no more."""

import time

import numpy as np

from koordpolicy.console.worlds.simulated import SimulatedWorld
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.simulation import SimulationSettings
from koordpolicy.simulator.workload import Arrival, Wave, Workload
from tests.integration.simulations import MINUTE, graph_with, node, pod

PATIENCE = 60.0


def arrival(name: str, at: int, priority: str, seconds: int | None) -> Arrival:
    asked = pod(name, "10")
    asked["spec"]["priorityClassName"] = priority
    asked["spec"]["terminationGracePeriodSeconds"] = 0
    return Arrival(at * SECOND, asked, None if seconds is None else seconds * SECOND, Wave(0.1, 0.1))


def test_how_a_pod_ended_and_what_it_had_asked_for_is_told() -> None:
    classes = tuple(
        {"kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 9000), ("high", 9005))
    )
    arrivals = (
        arrival("victim", 0, "low", None),
        arrival("late", 60, "high", 120),
    )
    given = Workload((node("a"),), arrivals, objects=classes, span=10 * MINUTE)
    settings = SimulationSettings(30 * SECOND, colocation=False)
    world = SimulatedWorld(graph_with(), given, settings, np.random.default_rng(1), time.monotonic, speed=0)
    with world:
        end = time.monotonic() + PATIENCE
        while not world.clock()["over"]:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert world.clock()["failure"] == ""
        spans = world.spans()
    ended = [(span.pod, span.outcome) for span in spans if span.end is not None]
    assert sorted(ended) == [("default/late", "finished"), ("default/victim", "preempted")]
    assert {span.requested for span in spans} == {10_000}
