"""Pods of several profiles, pods that are not ours, rules that keep pods out or in, evaluations that fail."""

import json
from typing import Any

import pytest

from koordpolicy.cli.simulation.text import render
from koordpolicy.cli.simulation.words import Page
from koordpolicy.simulator.workload import Arrival, Wave
from tests.integration.simulations import MINUTE, graph_with, node, pod, simulated, workload
from tests.unit.graph.policies_text import document


def of(name: str, scheduler: str | None, cpu: str = "1", runs: int | None = None, **labels: str) -> Arrival:
    made = pod(name, cpu, **labels)
    if scheduler is not None:
        made["spec"]["schedulerName"] = scheduler
    return Arrival(0, made, runs, Wave(0.1, 0.1))


OWN = document(
    "SchedulingProfile",
    "only-b",
    "  schedulerName: only-b\n  filters:\n  - {name: NodeResourcesFit, plugin: NodeResourcesFit}\n  - {name: b, require: {cel: node.name == 'b'}, reason: no b}",
)


def text(report: dict[str, Any]) -> str:
    shown = render(report, Page(80))
    assert max(map(len, shown.splitlines())) <= 80
    json.dumps(report)
    return shown


def test_each_pod_goes_to_the_profile_that_it_names() -> None:
    pods = [
        of("p", "only-b"),
        of("q", "only-b"),
        of("r", "koord-scheduler"),
        of("s", None),
        of("t", "volcano"),
    ]
    pods.append(of("u", "default-scheduler"))
    report = simulated(graph_with(OWN), workload(pods), explain=("p", "r", "t"))
    assert report["pods"]["scheduled"] == 5
    explained = {one["pod"]: (one["profile"], one["node"]) for one in report["explained"]}
    assert explained["default/p"] == ("only-b", "b")
    assert explained["default/r"][0] == "koord-scheduler"
    assert report["notOurs"] == [{"scheduler": "volcano", "pods": 1, "example": "default/t"}]
    assert [one["pod"] for one in report["untried"]] == ["default/t"]
    shown = text(report)
    assert "not ours" in shown
    assert "of `volcano`, such as default/t" in shown
    assert "Why default/t was not tried" in shown


def test_profiles_see_each_others_pods() -> None:
    pods = [of("p", "only-b", "9"), of("q", "koord-scheduler", "9"), of("r", "only-b", "9")]
    report = simulated(graph_with(OWN), workload(pods, [node("b")]))
    assert (report["pods"]["scheduled"], report["pods"]["pending"]) == (1, 2)


def test_a_colocation_profile_sends_pods_to_a_profile() -> None:
    sends = document(
        "ColocationProfile",
        "send",
        "  match: {pods: {matchLabels: {to: b}}}\n  schedulerName: only-b",
    )
    pods = [of(f"p{at}", "volcano", to="b") for at in range(3)]
    report = simulated(graph_with(OWN, sends), workload(pods), explain=("p0",))
    assert report["pods"]["scheduled"] == 3
    assert [(one["profile"], one["node"]) for one in report["explained"]] == [("only-b", "b")]


RULES = [
    document("AdmissionRule", "owned", "  require: {cel: \"'owner' in pod.labels\"}\n  reason: not-owned"),
    document("AdmissionRule", "named", "  require: {cel: \"pod.name != 'p'\"}\n  enforcement: warn"),
]


def test_a_refused_pod_is_explained_by_the_rules_that_refuse_it() -> None:
    report = simulated(
        graph_with(*RULES), workload([of("p", None), of("q", None, owner="x")]), explain=("p",)
    )
    assert (report["pods"]["refused"], report["pods"]["scheduled"]) == (1, 1)
    [one] = report["untried"]
    assert [(rule["name"], rule["enforcement"], rule["rule"]) for rule in one["rules"]] == [
        ("named", "warn", "1.yaml:5:12"),
        ("owned", "enforce", "0.yaml:5:12"),
    ]
    shown = text(report)
    assert "`owned` (enforce): not-owned: the rule `owned` does not hold" in shown
    assert "`named` on CREATE, enforcement `warn`: such as default/p" in shown


def test_what_a_rule_does_not_let_go_stays_and_takes_nothing() -> None:
    keep = document(
        "AdmissionRule",
        "keep",
        "  operations: [DELETE]\n  match: {condition: \"operation == 'DELETE'\"}\n"
        "  require: {cel: \"!('keep' in oldPod.labels)\"}",
    )
    pods = [of("p", None, "9", runs=10 * MINUTE, keep="yes"), of("q", None, "9", runs=10 * MINUTE)]
    pods.append(of("r", None, "9"))
    report = simulated(graph_with(keep), workload(pods, [node("a")]))
    assert report["admission"]["kept"] == 1
    assert [(one["operation"], one["times"], one["example"]) for one in report["admission"]["broken"]] == [
        ("DELETE", 1, "default/p")
    ]
    assert (report["pods"]["finished"], report["pods"]["scheduled"]) == (2, 3)
    assert "`keep` on DELETE, enforcement `enforce`: such as default/p" in text(report)


FAILING = [
    (
        "a condition of an admission rule",
        document("AdmissionRule", "x", "  match: {condition: \"pod.labels['tier'] == '2'\"}\n  require: false"),
        ("", "0.yaml:5:22", 1, "pods", 1, 3, "default/p", "no_such_key"),
    ),
    (
        "a requirement",
        document("AdmissionRule", "x", "  require: {cel: \"pod.labels['tier'] == '2'\"}"),
        ("AdmissionRule/x.require", "0.yaml:5:12", 1, "pods", 1, 3, "default/p", "no_such_key"),
    ),
    (
        "a value of a ColocationProfile",
        document("ColocationProfile", "x", "  labels: {a: {cel: \"pod.labels['tier']\"}}"),
        ("ColocationProfile/x.labels[a]", "0.yaml:5:15", 1, "pods", 1, 3, "default/p", "no_such_key"),
    ),
    (
        "an offer",
        document("Overcommit", "batch", "  resource: batch\n  precedence: 1\n  cpu: {cel: \"cpu(node.labels['cores'])\"}"),
        ("Overcommit/batch.cpu", "0.yaml:7:8", None, "nodes", 2, 2, "a", "no_such_key"),
    ),
    (
        "the condition of a target",
        document("CPUSuppress", "x", "  match: {condition: \"int(node.labels['n']) > 2\"}\n  target: {cel: node.capacity.cpu}"),
        ("", "0.yaml:5:22", None, "nodes", 1, 2, "b", "no_such_key"),
    ),
    (
        "a filter",
        document(
            "SchedulingProfile", "koord-scheduler",
            "  schedulerName: koord-scheduler\n  filters:\n  - {name: f, require: {cel: \"node.labels['zone'] == pod.name\"}, reason: f}",
        ),
        ("SchedulingProfile/koord-scheduler filter:f", "0.yaml:7:24", None, "pods", 3, 3, "default/r", "no_such_key"),
    ),
    (
        "a score",
        document(
            "SchedulingProfile", "koord-scheduler",
            "  schedulerName: koord-scheduler\n  scores:\n  - {name: s, weight: 1, value: {cel: \"100 / node.labels[?'nope'].orValue('').size()\"}}",
        ),
        ("SchedulingProfile/koord-scheduler score:s", "0.yaml:7:33", None, "pods", 3, 3, "default/r", "divi"),
    ),
    (
        "the condition of a filter for all nodes at a time",
        document(
            "SchedulingProfile", "koord-scheduler",
            "  schedulerName: koord-scheduler\n  match: {condition: \"int(node.labels['n']) > 2\"}\n  precedence: 1\n"
            "  filters:\n  - {name: f, require: {cel: node.capacity.cpu > cpu('1')}, reason: f}",
        ),
        ("", "0.yaml:6:22", None, "pods", 1, 3, "default/r", "no_such_key"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "expected"), [one[1:] for one in FAILING], ids=[one[0] for one in FAILING]
)
def test_evaluations_that_fail_are_told_at_the_top(policy: str, expected: tuple[Any, ...]) -> None:
    pods = [of("p", None), of("q", None, tier="x"), of("r", None, tier="1", workload="batch")]
    report = simulated(graph_with(policy), workload([*pods], minutes=10))
    decision, place, times, things, on, total, example, error = expected
    [one] = report["failedEvaluations"]
    assert (one["decision"], one["place"], one["things"]) == (decision, place, things)
    assert (one["on"], one["total"], one["example"]) == (on, total, example)
    assert one["error"].startswith(error)
    assert one["times"] == times or (times is None and one["times"] > 0)
    shown = text(report)
    assert shown.index("Evaluations that failed") < shown.index("Pods")
    assert place in shown


def test_a_run_in_which_nothing_fails_says_nothing_of_it() -> None:
    report = simulated(graph_with(), workload([of("p", None)], minutes=10))
    assert report["failedEvaluations"] == []
    assert "failed" not in text(report)
