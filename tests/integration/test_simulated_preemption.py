"""Preemption on virtual time: who goes has the time to stop, and keeps its place until then."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from ruamel.yaml import YAML

from koordpolicy.cluster.nodes import NodeView
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.report import report
from koordpolicy.simulator.simulation import EPOCH, Simulation, SimulationSettings
from koordpolicy.simulator.workload import Arrival, Wave, Workload
from tests.integration.simulations import MINUTE, graph_with, node, pod

CASES: Final = YAML(typ="safe").load(Path(__file__).with_name("simulated_preemption.yaml").read_text("utf-8"))
GRAPH: Final = graph_with()
LEVEL: Final = Wave(0.1, 0.1)
Case = Mapping[str, Any]


def arrival(name: str, given: Case) -> Arrival:
    asked = pod(name, str(given["cpu"]), given.get("memory", "1Gi"))
    asked["spec"]["priorityClassName"] = f"p{given['priority']}"
    if "grace" in given:
        asked["spec"]["terminationGracePeriodSeconds"] = given["grace"]
    runs = given.get("runs")
    return Arrival(given.get("at", 0) * SECOND, asked, None if runs is None else runs * SECOND, LEVEL)


class Seen:
    """A simulation of a case, looked at in the middle of every second."""

    def __init__(self, case: Case) -> None:
        arrivals = sorted((arrival(*one) for one in case["pods"].items()), key=lambda one: one.time)
        classes = [
            {"kind": "PriorityClass", "metadata": {"name": f"p{at}"}, "value": 9000 + at} for at in range(10)
        ]
        given = Workload((node("a"),), tuple(arrivals), objects=tuple(classes), span=20 * MINUTE)
        settings = SimulationSettings(20 * MINUTE, colocation=False)
        self.made = Simulation(GRAPH, given, settings, np.random.default_rng(1))
        self.story: list[str] = []
        self.looks: dict[int, dict[str, Any]] = {}
        self._known: dict[str, tuple[str, str, bool]] = {}
        self.made.agenda.at(EPOCH + SECOND // 2, self.look)
        self.made.run()

    def look(self) -> None:
        agenda = self.made.agenda
        agenda.at(agenda.now + SECOND, self.look)
        second, cluster = (agenda.now - EPOCH) // SECOND, self.made.cluster
        pods = {one.name: one for one in cluster.objects.pods.values()}
        now = {name: (one.uid, one.node_name, one.terminating) for name, one in pods.items()}
        for name, (uid, _, leaving) in self._known.items():
            if now.get(name, ("",))[0] != uid:
                self.story.append(f"{second} -{name}")
            elif now[name][2] and not leaving:
                self.story.append(f"{second} !{name}")
        for name, (uid, on, _) in now.items():
            if on and (uid, on) != self._known.get(name, ("", ""))[:2]:
                self.story.append(f"{second} +{name}")
        self._known = now
        table = cluster.schedulers.first.cache.table
        self.looks[second] = {
            "requested": NodeView(table).amount("resources.requested", "cpu").sum() // 1000,
            "leaving": [name for name, one in sorted(pods.items()) if one.terminating],
            "nominated": [name for name, one in sorted(pods.items()) if one.nominated_node == "a"],
        }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_who_goes_has_its_time_to_stop(case: Case) -> None:
    seen = Seen(case)
    assert seen.story == case["story"]
    for second, expected in case.get("looks", {}).items():
        assert seen.looks[second] == expected, second
    told = report(seen.made)
    said = {name: one["count"] for name, one in told["events"]["reasons"].items()}
    makes_room = said.pop("Preempting", 0)
    assert said == case["events"]
    # One for a pod that others go for, however many they are.
    preempted = case["events"].get("Preempted", 0)
    assert min(1, preempted) <= makes_room <= preempted
    pods = told["pods"]
    assert pods["total"] == pods["scheduled"] + pods["pending"]
    assert pods["scheduled"] == pods["finished"] + pods["running"]
    assert told["scheduling"]["preempted"] == case["events"]["Preempted"]
