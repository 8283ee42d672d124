"""Faults in simulations: what they do to pods, reports and writes, through the real components."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from koordpolicy.cli.simulation.html import page
from koordpolicy.cli.simulation.text import render
from koordpolicy.cli.simulation.words import Page
from koordpolicy.language.schema import schema_of
from koordpolicy.simulator.fault_file import FaultFile
from koordpolicy.simulator.fault_plan import FaultKind, FaultPlan, read_faults
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


HELD = graph_with(
    "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata: {name: held}\nspec: {parameters: {threshold: 20%}}\n"
)
"""Batch work may use no more than a fifth of a node together with what else is there."""
BATCH = tuple(job(f"j{at}", "2", 90, at=9) for at in range(3))


def held(plan: FaultPlan | None, **settings: Any) -> dict[str, Any]:
    given = workload(BATCH, [node("n0")])
    return simulated(HELD, given, faults=plan, **settings)


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
        ("nodeLoss: {nodes: {count: 1}}", ":2: `at` is needed: when it begins"),
        ("nodeLoss: {at: 1x, nodes: {count: 1}}", ":2: `at`: `1x` is not a duration; write one such as `90s`"),
        ("nodeLoss: {at: 0, nodes: {count: 1}}", ":2: `at`: expected a duration, found `0`; write one such as"),
        ("nodeLoss: {at: 1h}", ":2: `nodes` is needed: the nodes that are lost"),
        ("nodeLoss: {at: 1h, nodes: {}}", ":2: `nodes`: it names no nodes; write such as `{count: 2}`"),
        ("nodeLoss: {at: 1h, nodes: [n0]}", ":2: `nodes` is a mapping, not a list; its fields are `names`"),
        ("nodeLoss: {at: 1h, nodes: {names: n0}}", ":2: `names` is a list, not the text `n0`"),
        ("nodeLoss: {at: 1h, nodes: {names: []}}", ":2: `names` has 0 elements; 1 is the least"),
        ("nodeLoss: {at: 1h, nodes: {count: 0}}", ":2: `count`: `0` is not between 1 and"),
        ("nodeLoss: {at: 1h, for: 0s, nodes: {count: 1}}", ":2: `for`: `0s` is not a duration of more than nothing"),
        ("metricGap: {at: 1h, nodes: {count: 1}}", ":2: `for` is needed: how long it lasts"),
        ("lateAgents: {at: 1h, for: 1h, nodes: {count: 1}}", ":2: `by` is needed: how much later they act"),
        ("lateStart: {at: 1h, by: 1h, nodes: {count: 1}}", ":2: unknown field `at`; there are `by`, `nodes`"),
        ("apiErrors: {at: 1h, for: 1h, share: 130%}", ":2: `share`: `130%` is not a percentage up to 100%"),
        ("apiErrors: {at: 1h, for: 1h, code: 404}", ":2: `code` is 409, 429 or 500, not `404`"),
        ("{}", ":2: the element: a fault is just one thing; write each as an element of its own: `nodeLoss`"),
        ("nodeLoss", ":2: the element is a mapping, not the text `nodeLoss`"),
    ],
)  # fmt: skip
def test_slips_are_told_with_their_place(tmp_path: Path, fault: str, said: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        planned(tmp_path, fault)
    assert said in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path))
    written = {"faults": [YAML(typ="safe").load(fault)]}
    assert not Draft202012Validator(schema_of(FaultFile)).is_valid(written)  # editors say so, too


def test_the_schema_takes_what_is_read(tmp_path: Path) -> None:
    every = (
        "nodeLoss: {at: 1h30m, nodes: {names: [n0, n1], count: 1}}",
        "metricGap: {at: 0s, for: 1.5h, nodes: {matchLabels: {pool: a}}}",
        "lateAgents: {at: 1m, for: 1h, by: 500ms, nodes: {count: 1}}",
        "lateStart: {by: 20m, nodes: {count: 1}}",
        "apiErrors: {at: 8h, for: 10m, share: 0.5%, code: 409}",
    )
    assert {str(one.kind) for one in planned(tmp_path, *every).faults} == set(FaultKind)
    read = YAML(typ="safe").load((tmp_path / "faults.yaml").read_text())
    Draft202012Validator(schema_of(FaultFile)).validate(read)


def test_late_agents_let_best_effort_work_use_more_for_so_long(tmp_path: Path) -> None:
    """It is held back once an agent has seen it."""

    def used(*faults: str) -> float:
        plan = planned(tmp_path, *faults) if faults else None
        return float(held(plan)["utilisation"]["cpuUsed"]["mean"])

    short, long = (
        used(f"lateAgents: {{at: 0s, for: 50m, by: {by}, nodes: {{count: 1}}}}") for by in ("10s", "200s")
    )
    assert used() < short < long


def test_agents_that_begin_late_offer_nothing_until_then(tmp_path: Path) -> None:
    arrivals = [service(f"s{at}", "4", 0.2) for at in range(2)]
    late = run(planned(tmp_path, "lateStart: {by: 30m, nodes: {count: 2}}"), *arrivals)
    offered = "kubernetes.io/batch-cpu"
    never = run(planned(tmp_path, "lateStart: {by: 5h, nodes: {count: 2}}"), *arrivals)
    assert never["overcommit"].get(offered, {"offeredMean": 0})["offeredMean"] == 0
    assert (
        0
        < late["overcommit"][offered]["offeredMean"]
        < run(None, *arrivals)["overcommit"][offered]["offeredMean"]
    )
    assert late["faults"]["nodeSecondsWithoutReports"] == 2 * 30 * 60


def test_agents_may_not_be_later_than_the_next_reports(tmp_path: Path) -> None:
    plan = planned(tmp_path, "lateAgents: {at: 0s, for: 1h, by: 5m, nodes: {count: 1}}")
    with pytest.raises(
        WorkloadError, match=r"faults.yaml:2: .* write a shorter `by`, or a longer `--interval`"
    ):
        run(plan, service("s", "2", 0.5), nodes=1)


def test_nodes_that_are_not_there_are_told(tmp_path: Path) -> None:
    for nodes, said in (
        ("names: [n00]", "did you mean `n0`"),
        ("count: 9", "there are 2 nodes, fewer than `count: 9`"),
    ):
        plan = planned(tmp_path, f"nodeLoss: {{at: 10m, nodes: {{{nodes}}}}}")
        with pytest.raises(WorkloadError, match=said):
            run(plan, service("s", "2", 0.5))


@pytest.mark.parametrize(
    "fault",
    [
        "nodeLoss: {at: 1h, nodes: {count: 1}}",
        "metricGap: {at: 90m, for: 1m, nodes: {count: 1}}",
        "lateAgents: {at: 60m, for: 1h, by: 1s, nodes: {count: 1}}",
        "apiErrors: {at: 8h, for: 10m}",
    ],
)
def test_what_would_begin_after_the_end_is_refused(tmp_path: Path, fault: str) -> None:
    plan = planned(tmp_path, fault)
    arrival = service("s", "2", 0.5)
    said = r"faults.yaml:2: it begins at .*, and the simulation ends at 1h0m0s; write an earlier `at`, or .* `--until`"
    with pytest.raises(WorkloadError, match=said):
        run(plan, arrival)
    assert run(plan, arrival, until=plan.faults[0].at + 1)["faults"]["planned"]


def test_what_an_interrupt_comes_before_did_not_happen(tmp_path: Path) -> None:
    plan = planned(tmp_path, "nodeLoss: {at: 1h, nodes: {count: 1}}", "nodeLoss: {at: 2h, nodes: {count: 1}}")
    given = workload([service("s", "2", 0.5)], [node("n0")], minutes=180)
    told = {**simulated(GRAPH, given, faults=plan), **LATER}
    stopped = {**told, "interruptedAtSeconds": 5400}
    for shown in (render(stopped, Page(200)), page(stopped)):
        assert shown.count("it did not happen: interrupted before") == 1
    marked = "<title>02:00 1 node"
    assert (marked in page(told), marked in page(stopped)) == (True, False)
    assert "did not happen" not in render(told, Page(200))


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


# --- beside agents with kernels of their own ---------------------------------------------------------


def beside(plan: FaultPlan | None, *arrivals: Any, **settings: Any) -> dict[str, Any]:
    return run(plan, *arrivals, nodes=1, agents=True, **settings)


def test_a_lost_node_stands_still_with_its_kernel(tmp_path: Path) -> None:
    """Five minutes are missing to a job that would have ended in time."""
    plan = planned(tmp_path, "nodeLoss: {at: 10m, for: 5m, nodes: {count: 1}}")
    jobs = job("j", "2", minutes=52)
    assert beside(None, jobs)["pods"]["finished"] == 1
    assert beside(plan, jobs)["pods"]["finished"] == 0
    assert beside(plan, job("j", "2", minutes=44))["pods"]["finished"] == 1


def test_an_agent_that_is_silent_does_nothing(tmp_path: Path) -> None:
    plan = planned(tmp_path, "metricGap: {at: 20m, for: 40m, nodes: {count: 1}}")
    silent, heard = (held(one, agents=True)["agents"] for one in (plan, None))
    assert 0 < silent["rounds"] < heard["rounds"]
    never = held(planned(tmp_path, "lateStart: {by: 5h, nodes: {count: 1}}"), agents=True)
    assert (never["agents"]["rounds"], never["agents"]["fileWrites"]) == (0, 0)


def test_agents_with_kernels_are_late_as_others_are(tmp_path: Path) -> None:
    plan = planned(tmp_path, "lateAgents: {at: 0s, for: 50m, by: 200s, nodes: {count: 1}}")
    late, heard = (held(one, agents=True)["utilisation"]["cpuUsed"]["mean"] for one in (plan, None))
    assert late > heard
    assert held(plan, agents=True) == held(plan, agents=True)
