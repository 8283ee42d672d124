"""The descheduler in simulations: nodes are used more evenly with it, nothing is lost, and all is the same by the same seed."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.simulator.traces.manifests import ARRIVES, RUNS
from koordpolicy.simulator.workload import Arrival, Wave
from tests.integration.simulations import MINUTE, graph_with, node, pod, service, simulated, workload

REBALANCE = """
apiVersion: koordpolicy.io/v1alpha1
kind: Descheduling
metadata: {name: koord-descheduler}
spec:
  strategies:
    - name: LowNodeLoad
      enabled: true
      load:
        high: {cpu: 45%}
        low: {cpu: 25%}
        anomaly: {rounds: 2}
"""
OFF = graph_with()
ON = graph_with(REBALANCE)
NODES = [node(name) for name in "abc"]


def given() -> Any:
    """Six services that use all they ask for come while a job fills the third node; it ends, and the node lies idle."""
    filler = Arrival(0, pod("filler", "10"), 15 * MINUTE, Wave(0.1, 0.1))
    services = [service(f"web-{number}", "3", 1.0) for number in range(6)]
    late = [Arrival(MINUTE, one.pod, None, one.wave) for one in services]
    return workload([filler, *late], NODES, minutes=120)


def run(graph: Any, seed: int = 1, **settings: Any) -> dict[str, Any]:
    return simulated(graph, given(), seed, **settings)


@pytest.fixture(scope="module")
def rebalanced() -> dict[str, Any]:
    return run(ON)


@pytest.fixture(scope="module")
def left_off() -> dict[str, Any]:
    return run(ON, descheduling=False)


def test_nodes_are_used_more_evenly_with_it(rebalanced: dict[str, Any], left_off: dict[str, Any]) -> None:
    ends = rebalanced["balance"]["atTheEnd"], left_off["balance"]["atTheEnd"]
    assert ends[0]["deviation"] < ends[1]["deviation"] / 2
    assert ends[0]["highestNode"] < ends[1]["highestNode"]
    assert (ends[0]["overloadedNodes"], ends[1]["overloadedNodes"]) == (0, 2)
    assert left_off["descheduling"] is None


def test_each_move_is_a_migration_with_room_before_the_pod_goes_and_nothing_is_lost(
    rebalanced: dict[str, Any],
) -> None:
    done = rebalanced["descheduling"]
    assert done["evicted"] > 0
    assert done["moves"] == {"LowNodeLoad": done["evicted"]}
    assert done["migrations"] == {"Succeeded": done["evicted"]}
    reasons = rebalanced["events"]["reasons"]
    assert reasons["ReservationBound"]["count"] == reasons["Descheduled"]["count"] == done["evicted"]
    assert (rebalanced["pods"]["running"], rebalanced["pods"]["pending"]) == (6, 0)
    assert rebalanced["pods"]["scheduled"] == 7


def test_it_is_the_same_by_the_same_seed(rebalanced: dict[str, Any]) -> None:
    assert run(ON) == rebalanced


def test_without_reservations_pods_go_at_once_and_come_anew() -> None:
    directly = run(graph_with(REBALANCE.replace("spec:\n", "spec:\n  migrate: false\n")))
    done = directly["descheduling"]
    assert done["migrations"] == {}
    assert done["evicted"] == done["results"]["evicted"] > 0
    assert directly["pods"]["running"] == 6


def test_a_disruption_budget_holds() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    for one in (found := given()).arrivals:
        if one.duration is None:
            one.pod["metadata"]["labels"]["app"] = "web"
    assert simulated(ON, replace(found, objects=(budget,)))["descheduling"]["evicted"] == 0


def test_a_pack_that_leaves_it_off_moves_nothing_and_has_none() -> None:
    told = run(OFF)
    assert told["descheduling"] is None
    assert told["balance"]["overloadedNodes"] is None
    assert told["balance"]["atTheEnd"]["deviation"] > 0.2


def test_the_command_tells_of_the_balance_with_it_and_without(tmp_path: Path) -> None:
    policies, workload_file = _files(tmp_path)
    code, text, _ = call("simulate", *policies, *workload_file, "--report", str(tmp_path / "page.html"))
    assert code == 0
    assert "Balance of nodes" in text
    assert "without" in text
    told, _, _ = text.partition("; again by")  # a path may be longer than a line
    assert max(map(len, told.splitlines())) <= 80
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Standard deviation of the CPU in use of nodes" in page
    assert "without it" in page
    _, text, _ = call("simulate", *policies, *workload_file, "--without-descheduling")
    assert "the descheduler was left off" in text
    other = tmp_path / "other"
    other.mkdir()
    (other / "bundle.yaml").write_text(BUNDLE, encoding="utf-8")
    _, text, _ = call(
        "simulate", *policies, *workload_file, "--against", str(other), "--seeds", "1", "-o", "json"
    )
    measures = {one["name"]: one for one in json.loads(text)["measures"]}
    even, over = measures["deviation of nodes' CPU in use"], measures["nodes above their threshold"]
    assert even["after"] < even["before"]
    assert over["after"] < over["before"]
    assert measures["pods descheduled"]["after"] > 0 == measures["pods descheduled"]["before"]


def call(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(arguments, Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


BUNDLE = """
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: mine}
spec: {extends: [koordinator]}
"""


def _written(one: Arrival) -> dict[str, Any]:
    """A pod as a file has it, which uses what services do."""
    metadata = one.pod["metadata"]
    annotations = {ARRIVES: f"{one.time // 10**9}s"}
    if one.duration is not None:
        annotations[RUNS] = f"{one.duration // 10**9}s"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **one.pod,
        "metadata": {**metadata, "annotations": annotations},
    }


def _files(place: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A pack and the same workload as files."""
    pack = place / "pack"
    pack.mkdir()
    (pack / "bundle.yaml").write_text(BUNDLE, encoding="utf-8")
    lower = REBALANCE.replace("45%", "6.5%").replace("25%", "4%")
    (pack / "rebalance.yaml").write_text(lower, encoding="utf-8")
    files = {
        "nodes.json": [{"apiVersion": "v1", "kind": "Node", **one} for one in NODES],
        "pods.json": [_written(one) for one in given().arrivals],
    }
    for name, items in files.items():
        (place / name).write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8"
        )
    return ("-p", str(pack)), (
        "--nodes",
        str(place / "nodes.json"),
        "--pods",
        str(place / "pods.json"),
        "--until",
        "1h",
    )
