"""Permits in simulations: the virtual clock comes when the driver says, though nothing else happens."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from ruamel.yaml import YAML

from koordpolicy.scheduler.plugins import PLUGINS
from koordpolicy.scheduler.plugins.base import Host
from koordpolicy.scheduler.role import Role
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.report import report
from koordpolicy.simulator.simulation import EPOCH, Simulation, SimulationSettings
from koordpolicy.simulator.workload import Arrival, Workload
from tests.integration.simulations import MINUTE, node, pod
from tests.unit.scheduler.licences import LICENCES
from tests.unit.scheduler.test_permits import Permits
from tests.unit.scheduler.test_plugins_with_state import graph_of

CASES: Final = YAML(typ="safe").load(Path(__file__).with_name("simulated_permits.yaml").read_text("utf-8"))


class Seen:
    """A simulation of a case."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.states: list[Permits] = []
        plugin = replace(
            LICENCES,
            state=lambda host: self.keep(host, case["permit"]),
            reserve=lambda state, asked, _nodes, _parameters: state.adopt(asked),
            permit=Permits.answer,
        )
        settings = SimulationSettings(
            20 * MINUTE, colocation=False, role=Role(plugins={**PLUGINS, "Licences": plugin})
        )
        given = Workload((node("a"),), (Arrival(0, pod("p", "1")),), span=10 * MINUTE)
        self.made = Simulation(graph_of(), given, settings, np.random.default_rng(1))
        for seconds in case.get("asked_again", ()):
            at = EPOCH + int(seconds * SECOND)
            self.made.agenda.at(at, self.ask_again)
        self.made.run()

    def ask_again(self) -> None:
        self.states[0].host.reconsider()

    def keep(self, host: Host, answers: list[float | bool]) -> Permits:
        self.states.append(Permits(host, answers))
        return self.states[-1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_nothing_else_has_to_happen(case: Mapping[str, Any]) -> None:
    seen = Seen(case)
    told = report(seen.made)
    events = told["events"]["reasons"]
    waits = told["scheduling"]["waitSeconds"]["max"]
    assert (waits if told["pods"]["scheduled"] else None) == case.get("placed")
    assert [one["reason"] for one in told["pending"]] == ([case["pending"]] if "pending" in case else [])
    failed = seen.made.cluster.events.reasons.get("FailedScheduling")
    assert (None if failed is None else (failed.latest.first_ns - EPOCH) / SECOND) == case.get("refused")
    assert events.get("Scheduled", {"count": 0})["count"] == told["pods"]["scheduled"]
    assert seen.made.cluster.schedulers.unplaced == told["pods"]["pending"]
