"""Simulations whose nodes have agents: the real strategies on models of kernels, and what follows from it in the cluster."""

import io
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.simulation.text import render
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.simulator.workload import Arrival, Wave
from tests.integration.simulations import MINUTE, graph_with, job, node, pod, service, simulated, workload

GIB = 1 << 30
EVICTION = """\
apiVersion: koordpolicy.io/v1alpha1
kind: MemoryEviction
metadata: {name: ours}
spec: {enabled: true, threshold: 40%, lower: 35%, bestEffort: {enabled: true}}
"""
SUPPRESS = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: ours}
spec: {mechanism: %s, parameters: {threshold: 40%%}}
"""


PREDICTION = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Prediction
metadata: {name: ours}
spec: {enabled: %s, coldStart: 10m}
"""
ISOLATION = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: ours}
spec: {enabled: false}
---
apiVersion: koordpolicy.io/v1alpha1
kind: Isolation
metadata: {name: ours}
spec: {group: BE, cpu: {enabled: true, idle: %s}}
"""


@pytest.fixture(scope="module")
def pack() -> RuleGraph:
    return graph_with()


def hungry(name: str, gib: int, growth: int, minutes: int = 50) -> Arrival:
    """A best-effort job that takes so many GiB more an hour, up to what it requests."""
    one = pod(name, "1", f"{gib}Gi", workload="batch")
    return Arrival(5 * MINUTE, one, minutes * MINUTE, Wave(1.0, 1.0), growth * GIB)


def run(graph: RuleGraph, *arrivals: Arrival, **settings: Any) -> dict[str, Any]:
    return simulated(graph, workload(arrivals, [node("a")]), agents=True, **settings)


@pytest.mark.parametrize("mechanism", ["cpuset", "cfsQuota"])
def test_best_effort_work_is_left_what_policy_says(mechanism: str) -> None:
    graph = graph_with(SUPPRESS % mechanism)
    arrivals = (service("web", "8", 0.25), job("crawl", "7", minutes=30))
    plain = simulated(graph, workload(arrivals, [node("a")]))
    told = run(graph, *arrivals)
    assert told["agents"]["fileWrites"] > 0
    assert told["agents"]["refusedWrites"] == 0
    assert plain["suppression"]["withheldCoreHours"] > 0
    # Both models have the same policy before them: what one withholds the other does, but for whole CPUs.
    withheld = told["suppression"]["withheldCoreHours"]
    assert withheld == pytest.approx(plain["suppression"]["withheldCoreHours"], rel=0.2)
    throttled = told["agents"]["throttledContainerHours"]
    assert (throttled > 0.1) == (mechanism == "cfsQuota"), "only a quota throttles"


def test_memory_that_grows_ends_in_an_eviction_before_the_kernel_acts(pack: RuleGraph) -> None:
    leak = hungry("leak", 30, 24)
    told = run(graph_with(EVICTION), leak)
    assert told["agents"]["evictions"].keys() == {"BEMemoryEvict"}
    assert told["agents"]["oomKills"] == 0
    assert told["events"]["reasons"]["evictPodSuccess"]["count"] == sum(told["agents"]["evictions"].values())
    assert told["pods"]["running"] + told["pods"]["pending"] == 1, "its owner has made it anew"
    highest = told["utilisation"]["memoryUsed"]["max"]
    assert 0.35 < highest < 0.45
    # By the pack nobody goes; the container ends at its own limit, again and again, and never gets done.
    told = run(pack, leak)
    assert told["agents"]["evictions"] == {}
    assert told["agents"]["oomKills"] > 0
    assert told["pods"]["finished"] == 0


@pytest.mark.parametrize(("predicts", "running"), [("true", 2), ("false", 1)])
def test_mid_work_finds_room_where_peaks_are_predicted(predicts: str, running: int) -> None:
    amounts = {"kubernetes.io/mid-cpu": "2000"}
    mid = pod("report", "1")
    mid["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    mid["spec"] |= {"schedulerName": "koord-scheduler", "priorityClassName": "koord-mid"}
    told = run(graph_with(PREDICTION % predicts), service("web", "8", 0.1), Arrival(30 * MINUTE, mid, None))
    assert told["pods"]["running"] == running
    assert "Prediction" in told["agents"]["strategies"]


def test_isolation_is_written_and_what_has_no_model_is_named() -> None:
    idles, told = (
        run(graph_with(ISOLATION % idle), job("crawl", "3", minutes=600))["agents"]
        for idle in ("true", "false")
    )
    assert idles["fileWrites"] > told["fileWrites"] > 0
    assert {"Interference", "SystemTuning"} <= set(told["notSimulated"])
    assert not set(told["notSimulated"]) & set(told["strategies"])


def test_equal_seeds_give_equal_days_and_people_read_them(pack: RuleGraph) -> None:
    arrivals = [Arrival(0, pod(f"web-{number}", "3"), None) for number in range(3)]
    arrivals += [job(f"crawl-{number}", "2", minutes=20, at=number) for number in range(6)]
    first, second = (run(pack, *arrivals, seed=7) for _ in range(2))
    assert first == second
    text = render(first, Page(100, False))
    assert "on models of 1 kernel" in text
    assert "CPUSuppress" in text.partition("at work")[2]
    assert "on models of" not in render(simulated(pack, workload(arrivals)), Page(100, False))


def test_a_node_that_does_not_say_its_memory_has_enough(pack: RuleGraph) -> None:
    bare = {
        "metadata": {"name": "a"},
        "status": {"allocatable": {"cpu": "4", "pods": "9"}, "capacity": {"cpu": "4"}},
    }
    small = {**pod("web", "1"), "spec": {"containers": [{"name": "main", "image": "x"}]}}
    told = simulated(pack, workload([Arrival(0, small, None)], [bare], 20), agents=True)
    assert (told["pods"]["running"], told["agents"]["oomKills"]) == (1, 0)


def test_without_colocation_there_is_nothing_for_agents_to_do() -> None:
    out = io.StringIO()
    code = main(
        ["simulate", "--nodes", "n.yaml", "--pods", "p.yaml", "--agents", "--without-colocation"],
        Terminal(out, out),
    )
    assert (code, "exclude each other" in out.getvalue()) == (2, True)
