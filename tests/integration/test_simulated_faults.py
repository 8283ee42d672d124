"""Faults in simulations: what they do to pods, reports and writes, through the real components."""

from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.simulation.html import page
from koordpolicy.cli.simulation.text import render
from koordpolicy.cli.simulation.words import Page
from koordpolicy.simulator.fault_plan import FaultPlan, read_faults
from koordpolicy.simulator.workload import WorkloadError
from tests.integration.simulations import graph_with, job, node, service, simulated, workload
from tests.integration.test_simulated_descheduling import REBALANCE, given

GRAPH = graph_with()


def planned(tmp_path: Path, *faults: str) -> FaultPlan:
    file = tmp_path / "faults.yaml"
    file.write_text("faults:\n" + "".join(f"- {one}\n" for one in faults))
    return read_faults(file)


LATER = {"withoutDescheduling": None, "wallSeconds": 0, "policies": {"digest": "0", "paths": ["x"]}}
"""What the command adds to a report."""


def run(plan: FaultPlan | None, *arrivals: Any, nodes: int = 2, **settings: Any) -> dict[str, Any]:
    given = workload(arrivals, [node(f"n{at}", pool="ab"[at % 2]) for at in range(nodes)])
    return simulated(GRAPH, given, faults=plan, **settings)


def test_pods_of_a_lost_node_are_made_anew_elsewhere(tmp_path: Path) -> None:
    plan = planned(tmp_path, "nodeLoss: {at: 10m, nodes: {names: [n0]}}")
    report = run(plan, *(service(f"s{at}", "2", 0.5) for at in range(4)))
    faults = report["faults"]
    assert faults["lostPods"] == faults["placedAnew"] > 0
    assert report["pods"]["running"] == 4
    assert faults["nodeSecondsWithoutReports"] == 50 * 60
    assert (
        report["services"]["violationMinutes"]
        > run(None, service("s", "2", 0.5))["services"]["violationMinutes"]
    )


@pytest.mark.parametrize(("lasts", "lost"), [("30s", False), ("330s", False), ("341s", True)])
def test_pods_stay_as_long_as_they_tolerate_it(tmp_path: Path, lasts: str, lost: bool) -> None:
    """40 s of grace and 300 s of toleration."""
    plan = planned(tmp_path, f"nodeLoss: {{at: 10m, for: {lasts}, nodes: {{count: 1}}}}")
    report = run(plan, service("s", "2", 0.5), nodes=1)
    assert report["faults"]["lostPods"] == lost
    assert report["pods"]["running"] == 1


def test_who_tolerates_it_longer_stays(tmp_path: Path) -> None:
    plan = planned(tmp_path, "nodeLoss: {at: 10m, nodes: {count: 1}}")
    arrival = service("s", "2", 0.5)
    arrival.pod["spec"]["tolerations"] = [{"operator": "Exists", "effect": "NoExecute"}]
    assert run(plan, arrival, nodes=1)["faults"]["lostPods"] == 0


def test_work_stands_still_while_its_node_is_lost(tmp_path: Path) -> None:
    plan = planned(tmp_path, "nodeLoss: {at: 10m, for: 5m, nodes: {count: 1}}")
    ends = run(plan, job("j", "2", minutes=52), nodes=1)["pods"]["finished"]
    assert (ends, run(None, job("j", "2", minutes=52), nodes=1)["pods"]["finished"]) == (0, 1)


def test_a_gap_of_metrics_takes_back_what_is_offered(tmp_path: Path) -> None:
    """The pack offers nothing by reports that are too old."""
    plan = planned(tmp_path, "metricGap: {at: 10m, for: 45m, nodes: {matchLabels: {pool: a}}}")
    arrivals = [service(f"s{at}", "4", 0.2) for at in range(2)]
    gap, without = (run(one, *arrivals)["overcommit"]["kubernetes.io/batch-cpu"] for one in (plan, None))
    assert gap["offeredMean"] < without["offeredMean"]


@pytest.mark.parametrize("code", [409, 429, 500])
def test_writes_that_are_refused_are_made_later(tmp_path: Path, code: int) -> None:
    plan = planned(tmp_path, f"apiErrors: {{at: 0s, for: 5m, code: {code}}}")
    report = run(plan, *(service(f"s{at}", "2", 0.5) for at in range(3)))
    assert report["faults"]["refusedWrites"][str(code)] > 0
    assert report["faults"]["bindingsDelayed"] == 3
    assert report["pods"]["running"] == 3
    assert report["scheduling"]["waitSeconds"]["max"] > 60


def test_it_is_the_same_by_the_same_seed(tmp_path: Path) -> None:
    plan = planned(
        tmp_path, "apiErrors: {at: 0s, for: 30m, share: 40%}", "nodeLoss: {at: 20m, nodes: {count: 2}}"
    )
    arrivals = [service(f"s{at}", "2", 0.5) for at in range(6)]
    assert run(plan, *arrivals, nodes=4) == run(plan, *arrivals, nodes=4)
    labels: dict[str, dict[str, str]] = {f"n{at}": {} for at in range(40)}
    drawn = {FaultPlan(plan.faults, seed).nodes_of(plan.faults[1], labels) for seed in range(5)}
    assert len(drawn) > 1


def test_people_are_told(tmp_path: Path) -> None:
    plan = planned(
        tmp_path, "nodeLoss: {at: 10m, nodes: {count: 1}}", "apiErrors: {at: 0s, for: 5m, share: 30%}"
    )
    report = run(plan, service("s", "2", 0.5))
    shown = render(
        {
            **report,
            "withoutDescheduling": None,
            "wallSeconds": 0,
            "policies": {"digest": "0", "paths": ["x"]},
        },
        Page(80),
    )
    assert "1 node lost, to the end" in shown
    assert "30 % of writes" in shown
    assert "answers 500" in page({**report, **LATER})


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("nodeLos: {}", ":2: unknown field `nodeLos`; did you mean `nodeLoss`?"),
        ("nodeLoss: {nodes: {count: 1}}", ":2: `at` is needed"),
        ("nodeLoss: {at: 1x, nodes: {count: 1}}", ":2: `at`: "),
        ("nodeLoss: {at: 1h}", ":2: "),
        ("nodeLoss: {at: 1h, nodes: {count: 0}}", ":2: `count` is a whole number"),
        ("metricGap: {at: 1h, nodes: {count: 1}}", ":2: `for` is needed"),
        ("apiErrors: {at: 1h, for: 1h, share: 130%}", ":2: `share`: `130%` is no percentage"),
        ("apiErrors: {at: 1h, for: 1h, code: 404}", ":2: `code` is one of 409, 429, 500"),
    ],
)
def test_slips_are_told_with_their_place(tmp_path: Path, fault: str, said: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        planned(tmp_path, fault)
    assert said in str(raised.value)


def test_nodes_that_are_not_there_are_told(tmp_path: Path) -> None:
    for nodes, said in (("names: [n00]", "did you mean `n0`"), ("count: 9", "2 nodes fit")):
        plan = planned(tmp_path, f"nodeLoss: {{at: 10m, nodes: {{{nodes}}}}}")
        with pytest.raises(WorkloadError, match=said):
            run(plan, service("s", "2", 0.5))


def test_charts_mark_faults(tmp_path: Path) -> None:
    plan = planned(tmp_path, "nodeLoss: {at: 1h, nodes: {count: 1}}")
    given = workload([service("s", "2", 0.5)], [node("n0")], minutes=180)
    told = {**simulated(GRAPH, given, faults=plan), **LATER}
    assert 'class="mark red"' in page(told)
    assert "<title>01:00 1 node lost, to the end: n0</title>" in page(told)
    assert 'class="mark red"' not in page({**told, "faults": None})


def test_descheduling_goes_on_where_writes_are_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path, "apiErrors: {at: 0s, for: 1h, share: 50%}")
    report = simulated(graph_with(REBALANCE), given(), faults=plan)
    assert report["faults"]["refusedWrites"]["500"] > 0
    assert report["descheduling"]["rounds"] > 0
    assert report["pods"]["running"] + report["pods"]["pending"] == 6


def test_a_run_without_faults_tells_of_none() -> None:
    assert run(None, service("s", "2", 0.5))["faults"] is None
