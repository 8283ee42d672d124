"""`koordpolicy simulate` and `koordpolicy demo` as users call them."""

import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from koordpolicy import __version__
from koordpolicy.cli.main import main
from koordpolicy.cli.simulation import runs
from koordpolicy.cli.terminal import Terminal

WORKLOAD = """\
title: a small day
day: 3h
nodes: [{name: n, count: 3, cpu: 16, memory: 64Gi}]
services: [{name: web, replicas: 5, cpu: 8, memory: 4Gi, base: 10%, peak: 40%, peakAt: 1h}]
jobs: [{name: job, count: 8, cpu: 3, memory: 1Gi, runs: 30m, to: 2h, labels: {workload: batch}}]
"""
NODES = "sn,cpu_milli,memory_mib,gpu\n" + "".join(f"n{number},16000,65536,0\n" for number in range(3))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,creation_time,deletion_time\n" + "".join(
    f"p{number},{1000 * (number + 1)},1024,0,0,{'BE' if number % 2 else 'LS'},{60 * number},7200\n"
    for number in range(20)
)


def call(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(arguments, Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("trace")
    (folder / "nodes.csv").write_text(NODES, encoding="utf-8")
    (folder / "pods.csv").write_text(PODS, encoding="utf-8")
    return ("--nodes", str(folder / "nodes.csv"), "--pods", str(folder / "pods.csv"), "--interval", "10m")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    (folder / "workload.yaml").write_text(WORKLOAD, encoding="utf-8")
    (folder / "policies").mkdir()
    (folder / "policies" / "jobs.yaml").write_text(
        "apiVersion: koordpolicy.io/v1alpha1\nkind: ColocationProfile\nmetadata: {name: jobs}\n"
        "spec: {match: {pods: {matchLabels: {workload: batch}}}, qosClass: BE, band: batch}\n",
        encoding="utf-8",
    )
    return folder


def test_the_report_adds_up_and_is_no_wider_than_80_columns(trace: tuple[str, ...]) -> None:
    code, text, _ = call("simulate", *trace, "--explain", "p3")
    assert code == 0
    assert max(map(len, text.splitlines())) <= 80
    assert "20 in all" in text
    assert "Why default/p3 landed on" in text
    assert "koordinator/scheduling/koord-scheduler.yaml:" in text
    assert "Why pods are pending" in text  # 17 to 20 cores fit on no node
    assert f"made by koordpolicy {__version__} with seed 1; again by" in text


@pytest.mark.parametrize(("flags", "times"), [((), 0), (("--beside-services",), 1)])
def test_objects_are_walked_between_simulations_alone(
    flags: tuple[str, ...], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[None] = []
    monkeypatch.setattr(runs, "collect", lambda: walked.append(None))
    assert call("simulate", "--generate", "1:4", "--until", "10m", *flags)[0] == 0
    assert len(walked) == times


def test_json_has_the_same_content_and_repeats(trace: tuple[str, ...]) -> None:
    def told() -> dict[str, Any]:
        code, text, _ = call("simulate", *trace, "-o", "json", "--seed", "5")
        assert code == 0
        report: dict[str, Any] = json.loads(text)
        assert report.pop("wallSeconds") >= 0
        assert report["made"]["command"] == shlex.join(
            ("koordpolicy", "simulate", *trace, "-o", "json", "--seed", "5")
        )
        assert (report["made"]["koordpolicy"], report["made"]["seeds"]) == (__version__, [5])
        return report

    report = told()
    pods = report["pods"]
    assert pods["total"] == 20 == pods["scheduled"] + pods["pending"] + pods["refused"]
    assert sum(one["pods"] for one in report["pending"]) == pods["pending"] > 0
    assert report["colocation"]["bands"] == {"batch": 10}
    assert report == told()


def test_an_early_end_leaves_pods_that_have_not_arrived(trace: tuple[str, ...]) -> None:
    _, text, _ = call("simulate", *trace, "-o", "json", "--until", "5m")
    assert json.loads(text)["pods"]["notArrived"] == 14


def test_a_pod_to_explain_that_never_came_is_told(trace: tuple[str, ...]) -> None:
    code, _, said = call("simulate", *trace, "--until", "1m", "--explain", "p19")
    assert (code, "no decision was made on a pod `p19`" in said) == (0, True)


def test_without_colocation_nothing_is_drawn_in(trace: tuple[str, ...]) -> None:
    _, text, _ = call("simulate", *trace, "--without-colocation")
    assert "without co-location: no profiles" in text


def test_what_cannot_be_read_stops_it_with_file_and_line(trace: tuple[str, ...], tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("sn,cpu_milli,memory_mib\nn,many,1\n", encoding="utf-8")
    code, text, said = call("simulate", "--nodes", str(broken), "--pods", trace[3])
    assert (code, text) == (2, "")
    assert "broken.csv:2: `many` in column `cpu_milli` is no number" in said


def test_the_demo_tells_of_both_days_within_80_columns(example: Path) -> None:
    code, text, _ = call("demo", str(example))
    assert code == 0
    shown = str(example)
    # A path is never broken: it is there to be copied.
    assert [line for line in text.splitlines() if len(line) > 80 and shown[-20:] not in line] == []
    for heading in (
        "CPU in use, hour by hour",
        "The day in figures",
        "What was suppressed",
        "Why default/job-",
        "Try next",
    ):
        assert heading in text


def test_the_demo_in_json_holds_both_reports(example: Path) -> None:
    code, text, _ = call("demo", str(example), "-o", "json")
    told = json.loads(text)
    assert code == 0
    assert told["with"]["colocation"]["bands"] == {"batch": 8}
    assert told["without"]["colocation"] == {"enabled": False, "profiles": {}, "bands": {}}
    assert told["with"]["pods"]["total"] == told["without"]["pods"]["total"] == 13


def test_a_demo_of_a_directory_without_a_workload_says_so(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    code, _, said = call("demo", str(tmp_path))
    assert (code, "workload.yaml: No such file" in said) == (2, True)


def node(name: str, cpu: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def pod(name: str, cpu: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
    }


@pytest.mark.parametrize("kinds", [True, False], ids=["kubectl get nodes,pods", "lists of the API"])
def test_what_kubectl_gives_is_taken_as_it_comes(tmp_path: Path, kinds: bool) -> None:
    nodes, pods = [node("a", "4")], [pod("small", "1"), pod("huge", "99")]
    # As an API server has made of it whose class has another value.
    pods[0]["metadata"]["uid"] = "1"
    pods[0]["spec"].update({"priorityClassName": "koord-prod", "priority": 9990, "preemptionPolicy": "Never"})
    if kinds:
        file = tmp_path / "all.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes + pods}))
        words = ("--nodes", str(file), "--pods", str(file))
    else:
        for kind, items in (("Node", nodes), ("Pod", pods)):
            bare = [
                {key: value for key, value in one.items() if key not in ("kind", "apiVersion")}
                for one in items
            ]
            (tmp_path / f"{kind}.json").write_text(
                json.dumps({"apiVersion": "v1", "kind": f"{kind}List", "items": bare})
            )
        words = ("--nodes", str(tmp_path / "Node.json"), "--pods", str(tmp_path / "Pod.json"))
    code, text, said = call("simulate", *words, "--explain", "shop/huge", "-o", "json")
    assert code == 0, said
    told = json.loads(text)
    assert (told["pods"]["scheduled"], told["pods"]["pending"]) == (1, 1)
    (one,) = told["explained"]
    assert one["pod"] == "shop/huge"
    assert [refusal["reason"] for refusal in one["refusals"]] == ["Insufficient cpu"]
    assert "Why shop/huge is pending" in call("simulate", *words, "--explain", "shop/huge")[1]


def listed(*items: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@pytest.mark.parametrize(
    ("nodes", "pods", "more", "problem"),
    [
        (listed(node("a", "4")), listed(node("a", "4")), (), "pods.json: there is no pod in it"),
        (
            listed(node("a", "4"), node("a", "8")),
            listed(pod("p", "1")),
            (),
            "nodes.json: the node `a` stands in it 2 times",
        ),
        ("", listed(pod("p", "1")), (), "nodes.json: the file is empty"),
        (listed(node("a", "4")), " \n", (), "pods.json: the file is empty"),
        (
            listed(node("a", "4")),
            listed(pod("p", "1"), {**pod("q", "1"), "metadata": {"name": "q", "namespace": "?"}}),
            (),
            "pods.json: items[1]: metadata.namespace: `?` is no name of a namespace",
        ),
        (
            listed(node("a", "4"), {**node("b", "4"), "metadata": {"name": "B_1"}}),
            listed(pod("p", "1")),
            (),
            "nodes.json: items[1]: metadata.name: `B_1` is no name of a Node",
        ),
        (
            listed(node("a", "4")),
            listed(pod("small", "1")),
            ("--explain", "smal"),
            "there is no pod `smal` to explain among 1 pod; did you mean `small`?",
        ),
    ],
)
def test_a_workload_that_cannot_be_meant_is_refused(
    tmp_path: Path, nodes: str, pods: str, more: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "nodes.json").write_text(nodes)
    (tmp_path / "pods.json").write_text(pods)
    code, out, said = call(
        "simulate", "--nodes", str(tmp_path / "nodes.json"), "--pods", str(tmp_path / "pods.json"), *more
    )
    assert (code, out) == (2, "")
    assert problem in said


def test_pods_that_are_on_a_node_are_placed_anew_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    bound = [pod("here", "1"), pod("gone", "1")]
    for one, place in zip(bound, ("a", "left"), strict=True):
        one["spec"]["nodeName"] = place
    file.write_text(listed(node("a", "4"), *bound, pod("new", "1")))
    words = ("simulate", "--nodes", str(file), "--pods", str(file))
    told = json.loads(call(*words, "-o", "json")[1])["pods"]
    assert (told["scheduled"], told["placedAnew"], told["onOtherNodes"]) == (3, 2, 1)
    text = " ".join(call(*words)[1].split())
    assert "2 pods were on a node already and were placed anew, as if just created: 1 on another node" in text


TIMED = """apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: not-on-fridays}
spec:
  require: {cel: "now.getDayOfWeek() != 5"}
  reason: friday
  message: no pods on Fridays
"""


@pytest.mark.parametrize(("start", "refused"), [("2026-11-20", 1), ("2026-11-21T08:00:00Z", 0)])
def test_it_begins_when_it_is_told_to(tmp_path: Path, start: str, refused: int) -> None:
    file, rule = tmp_path / "all.json", tmp_path / "rule.yaml"
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a", "4"), pod("p", "1")]})
    )
    rule.write_text(TIMED)
    words = ("--nodes", str(file), "--pods", str(file), "-p", str(rule), "--start", start, "-o", "json")
    code, text, said = call("simulate", *words)
    assert code == 0, said
    assert json.loads(text)["pods"]["refused"] == refused


def test_a_time_that_is_none_is_refused(trace: tuple[str, ...]) -> None:
    code, _, said = call("simulate", *trace, "--start", "yesterday")
    assert code == 2
    assert "`yesterday` is no time" in said


def test_a_generated_day_repeats_by_its_seed_and_excludes_files(trace: tuple[str, ...]) -> None:
    def told(*flags: str) -> dict[str, Any]:
        _, text, _ = call("simulate", "--generate", "4:24", "--until", "20m", "-o", "json", *flags)
        report: dict[str, Any] = json.loads(text)
        del report["wallSeconds"]
        return report

    first = told()
    assert (first["workload"]["nodes"], first["pods"]["total"]) == (4, 24)
    assert first == told()
    assert first["utilisation"] != told("--seed", "2")["utilisation"]
    assert call("simulate", *trace, "--generate", "4")[0] == 2
    assert call("simulate", "--pods", trace[3])[0] == 2
    with pytest.raises(SystemExit):
        call("simulate", "--generate", "0")
