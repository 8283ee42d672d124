"""Placements in the decision log: what was decided, why, how the nodes compared; and a log that costs no decision."""

import io
import json
from typing import Any

import pytest

from koordpolicy.runtime.decisions import DecisionLog
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler import decision_log as written
from koordpolicy.scheduler.decision_log import PlacementLog
from tests.unit.scheduler.world import PROFILE, START, node, policies
from tests.unit.scheduler.world import pod as small_pod

GRAPH = policies(
    {
        "filters": [
            {
                "name": "zone",
                "require": {"cel": "node.labels[?'zone'].orValue('') != 'closed'"},
                "reason": {"cel": "'the zone is closed'"},
            }
        ]
    }
)


class Logged:
    """A scheduler as a process has it (nothing explained), with its log."""

    def __init__(self, every: int = 1, nodes: int = 3) -> None:
        self.out, self.metrics = io.StringIO(), Metrics("scheduler")
        self.log = DecisionLog(self.out, self.metrics, "scheduler", every=every)
        self.scheduler = Scheduler(GRAPH, lambda: START, explained=0, refusals=False)
        self.placements = PlacementLog(
            self.log, PROFILE, lambda _: GRAPH, lambda digest: f"revision of {digest}"
        )
        self.scheduler.on_decided = self.placements.decided
        for number in range(nodes):
            labels = {"zone": "closed" if number == 0 else "open"}
            self.scheduler.set_node(node(f"n{number}", {"labels": labels}))

    def schedule(self, *names: str, cpu: str = "1") -> None:
        for name in names:
            self.scheduler.set_pod(small_pod(name, {"request": {"cpu": cpu}}))
        while (decision := self.scheduler.schedule_one()) is not None:
            self.placements.settled(decision, "scheduled" if decision.placed else "unschedulable", "")

    def entries(self) -> list[dict[str, Any]]:
        self.log.close()
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


def test_a_placement_says_where_why_and_how_the_nodes_compared() -> None:
    logged = Logged()
    logged.schedule("p")
    (entry,) = logged.entries()
    assert (entry["component"], entry["decision"]) == ("scheduler", f"SchedulingProfile/{PROFILE}")
    assert (entry["revision"], entry["digest"]) == (f"revision of {GRAPH.digest}", GRAPH.digest)
    assert entry["subject"]["pod"] == "default/p"
    assert (entry["value"], entry["result"]) == (entry["best"][0]["node"], "scheduled")
    assert (entry["nodes"], entry["feasible"]) == (3, 2)
    assert entry["refusals"] == [{"filter": "zone", "reason": "the zone is closed", "nodes": 1}]
    assert {one["node"] for one in entry["best"]} == {"n1", "n2"}
    for one in entry["best"]:
        assert one["total"] == pytest.approx(sum(one["scores"].values()))
    zone = next(rule for rule in entry["rules"] if rule["decision"].endswith("filters[zone].require"))
    assert zone["document"] == "SchedulingProfile/own-0"
    assert zone["place"].count(":") >= 2
    assert "open" in str(entry["facts"]["node.labels"])


def test_a_pod_that_finds_no_node_says_what_refused_it() -> None:
    logged = Logged()
    logged.schedule("large", cpu="100")
    (entry,) = logged.entries()
    assert (entry["value"], entry["result"], entry["feasible"]) == (None, "unschedulable", 0)
    assert entry["message"].startswith("0/3 nodes are available")
    assert [(one["filter"], one["nodes"]) for one in entry["refusals"]] == [("NodeResourcesFit", 3)]
    assert entry["rules"]


def test_each_so_many_th_is_written() -> None:
    logged = Logged(every=5)
    logged.schedule(*(f"p{number}" for number in range(12)))
    assert len(logged.entries()) == 3


def test_the_log_changes_no_decision() -> None:
    plain, logged = Logged(every=10**9), Logged()
    names = [f"p{number}" for number in range(20)]
    plain.schedule(*names)
    logged.schedule(*names)
    for name in names:
        assert plain.scheduler.cache.node_of(("default", name)) == logged.scheduler.cache.node_of(
            ("default", name)
        )


def test_a_log_that_fails_costs_an_entry_and_no_decision(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(written, "comparison", fails)
    logged = Logged()
    logged.schedule("p")
    assert logged.scheduler.cache.node_of(("default", "p"))
    assert logged.entries() == []
    assert logged.metrics.value("koordpolicy_decision_log_total", result="dropped") == 1
    assert "default/p" in caplog.text


def test_what_never_settles_is_written_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "_OPEN", 4)
    logged = Logged()
    for number in range(10):
        logged.scheduler.set_pod(small_pod(f"p{number}", {"request": {"cpu": "1"}}))
    while logged.scheduler.schedule_one() is not None:
        pass
    assert len(logged.entries()) == 6


def test_answers_to_kube_scheduler_are_written_too() -> None:
    logged = Logged()
    cycle = logged.scheduler.framework.cycle(small_pod("p"))
    logged.placements.answered(cycle, 3, ("n1",), ("the zone is closed", "the zone is closed"))
    (entry,) = logged.entries()
    assert (entry["result"], entry["nodes"], entry["feasible"]) == ("filtered", 3, 1)
    assert entry["refusals"] == [{"reason": "the zone is closed", "nodes": 2}]
    assert entry["subject"]["pod"] == "default/p"
    assert entry["rules"]
