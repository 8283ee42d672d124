"""Whole simulations: they add up, they repeat, and they follow the policies line by line."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koordpolicy.runtime.reports.troubles import FEW
from koordpolicy.simulator.simulation import Simulation, SimulationSettings, interval_for
from koordpolicy.simulator.workload import Arrival, Wave, Workload, WorkloadError
from tests.integration.simulations import (
    MINUTE,
    graph_with,
    job,
    node,
    pod,
    service,
    simulated,
    workload,
)

GRAPH = graph_with()


@st.composite
def small_workloads(draw: st.DrawFn) -> Workload:
    labels = st.sampled_from(
        [
            {},
            {"workload": "batch"},
            {"koordinator.sh/qosClass": "BE"},
            {"koordinator.sh/qosClass": "LSR"},
            {"koordinator.sh/qosClass": "LS"},
        ]
    )
    arrivals = [
        Arrival(
            draw(st.integers(0, 70)) * MINUTE,
            # Equal names on purpose now and then: the second one is refused.
            pod(f"p{draw(st.integers(0, 30))}", f"{draw(st.integers(1, 20_000))}m", **draw(labels)),
            draw(st.none() | st.integers(1, 90).map(lambda minutes: minutes * MINUTE)),
        )
        for _ in range(draw(st.integers(0, 10)))
    ]
    return workload(arrivals, [node(f"n{number}") for number in range(draw(st.integers(1, 3)))])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(small_workloads(), st.booleans())
def test_every_pod_is_scheduled_pending_refused_or_not_there_yet(small: Workload, colocation: bool) -> None:
    told = simulated(GRAPH, small, colocation=colocation)
    pods = told["pods"]
    assert pods["total"] == pods["scheduled"] + pods["pending"] + pods["refused"] + pods["notArrived"]
    assert pods["scheduled"] == pods["finished"] + pods["running"]
    assert sum(one["pods"] for one in told["pending"]) == pods["pending"]
    assert sum(one["pods"] for one in told["refused"]) == pods["refused"]
    assert all(one["reason"] for one in (*told["pending"], *told["refused"]))
    assert 0 <= told["utilisation"]["cpuUsed"]["max"] <= 1
    assert told["utilisation"]["cpuRequested"]["max"] <= 1


def test_a_pod_that_fits_nowhere_says_why() -> None:
    told = simulated(GRAPH, workload([service("big", "64", 0.1)]))
    assert told["pods"]["pending"] == 1
    assert told["pending"][0]["reason"] == "Insufficient cpu"
    assert "0/2 nodes are available: 2 Insufficient cpu." in told["pending"][0]["message"]


def test_a_pod_that_policy_forbids_says_why() -> None:
    forbidden = Arrival(0, pod("lsr", "1500m", **{"koordinator.sh/qosClass": "LSR"}))
    told = simulated(GRAPH, workload([forbidden]))
    assert told["pods"]["refused"] == 1
    assert "cpu-not-integer" in told["refused"][0]["reason"]


def test_equal_seeds_give_equal_reports() -> None:
    arrivals = [Arrival(0, pod(f"s{number}", "2")) for number in range(4)] + [job("j", "4")]
    first = simulated(GRAPH, workload(arrivals), seed=3)
    assert first == simulated(GRAPH, workload(arrivals), seed=3)
    assert first != simulated(GRAPH, workload(arrivals), seed=4)


def test_jobs_are_drawn_into_colocation_and_run_on_what_services_leave() -> None:
    arrivals = [service(f"s{number}", "8", 0.1) for number in range(4)] + [job("j", "4")]
    colocated = simulated(GRAPH, workload(arrivals))
    assert colocated["colocation"]["bands"] == {"batch": 1}
    assert colocated["pods"]["finished"] == 1
    # All 32 cores are requested, so that without co-location nothing is left.
    without = simulated(GRAPH, workload(arrivals), colocation=False)
    assert (without["pods"]["pending"], without["pods"]["finished"]) == (1, 0)


SUPPRESS = "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata: {name: own}\nspec: {parameters: {threshold: %s}}\n"
OVERCOMMIT = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: Overcommit\nmetadata: {name: own}\n"
    "spec: {resource: batch, cpu: {cel: %s}}\n"
)
WEIGHT = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: koord-scheduler}\n"
    "spec: {schedulerName: koord-scheduler, scores: [{name: Pool, weight: %s, value: {cel: \"node.name == 'b' ? 100 : 0\"}}]}\n"
)


def crowded() -> Workload:
    """A busy service and a job that wants more than it leaves."""
    return workload([service("s", "10", 0.3), job("j", "5")], [node("a")], minutes=120)


def test_the_suppress_percentage_decides_how_long_jobs_take() -> None:
    tight, wide = (simulated(graph_with(SUPPRESS % share), crowded()) for share in ("30%", "95%"))
    assert tight["suppression"]["withheldCoreHours"] > 0
    assert wide["suppression"]["withheldCoreHours"] == 0
    assert tight["suppression"]["lowest"]["target"] < 2


def test_the_overcommit_formula_decides_what_is_offered() -> None:
    none, much = (
        simulated(graph_with(OVERCOMMIT % formula), crowded())
        for formula in ('cpu("1")', "node.capacity.cpu")
    )
    assert (none["pods"]["scheduled"], none["pods"]["pending"]) == (1, 1)
    assert none["pending"][0]["reason"] == "Insufficient kubernetes.io/batch-cpu"
    assert (much["pods"]["scheduled"], much["pods"]["pending"]) == (2, 0)


def test_a_weight_decides_where_pods_land() -> None:
    def landed(weight: int) -> str:
        given = workload([service("s", "2", 0.1)], [node("a", 64), node("b", 4)])
        return str(simulated(graph_with(WEIGHT % weight), given, explain=("s",))["explained"][0]["node"])

    assert (landed(0), landed(50)) == ("a", "b")


def test_the_band_decides_which_resources_jobs_request() -> None:
    arrivals = [service(f"s{number}", "8", 0.1) for number in range(4)] + [job("j", "4")]
    batch = simulated(graph_with(), workload(arrivals))
    # Pods of the class BE may not be in the band mid.
    mid = simulated(
        graph_with(replacing={"band: batch": "band: mid", "qosClass: BE": "qosClass: LS"}), workload(arrivals)
    )
    assert (batch["colocation"]["bands"], mid["colocation"]["bands"]) == ({"batch": 1}, {"mid": 1})
    assert batch["pods"]["pending"] == 0
    assert mid["pending"][0]["reason"].startswith("Insufficient kubernetes.io/mid-cpu")


def test_long_simulations_are_coarse_and_hopeless_intervals_refused() -> None:
    hour = 60 * MINUTE
    assert interval_for(24 * hour) == 2 * MINUTE
    assert interval_for(3000 * hour) == 10 * hour
    with pytest.raises(WorkloadError, match="--interval"):
        Simulation(GRAPH, workload([], minutes=10**6), SimulationSettings(1000), np.random.default_rng(1))


def test_pods_go_for_dearer_ones_and_begin_anew() -> None:
    dear = pod("dear", "10")
    dear["spec"]["priorityClassName"] = "koord-prod"
    found = simulated(
        graph_with(),
        workload(
            [service("cheap", "10", 0.1), Arrival(10 * MINUTE, dear, None, Wave(0.1, 0.1))], [node("a")]
        ),
    )
    assert found["scheduling"]["preempted"] == 1
    assert (found["pods"]["scheduled"], found["pods"]["pending"]) == (1, 1)
    assert found["pods"]["notArrived"] == 0


@pytest.mark.parametrize("pods", [3, 15])
def test_a_rule_that_fails_for_many_pods_is_told_of_some(pods: int) -> None:
    """As on a cluster: of one trouble few pods have Events of their own, the others their conditions."""
    broken = (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: own}\n"
        "spec:\n  schedulerName: koord-scheduler\n"
        "  filters: [{name: broken, require: {cel: 'int(node.name) > 0'}}]\n"
    )
    arrivals = [Arrival(0, pod(f"p{number}", "1")) for number in range(pods)]
    told = simulated(graph_with(broken), workload(arrivals, minutes=1), colocation=False)
    assert told["pods"]["pending"] == pods
    assert told["scheduling"]["attempts"] == pods
    assert told["events"]["reasons"]["FailedScheduling"]["count"] == min(pods, FEW)


ASKED_NODE_BY_NODE = (
    """\
apiVersion: koordpolicy.io/v1alpha1
kind: Overcommit
metadata: {name: batch-by-use}
spec:
  resource: batch
  enabled: {cel: "node.usage.total.cpu >= millicores(0)"}
""",
    """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: by-use}
spec:
  enabled: {cel: "node.usage.total.cpu >= millicores(0)"}
""",
    """\
apiVersion: koordpolicy.io/v1alpha1
kind: SchedulingProfile
metadata: {name: by-use}
spec:
  schedulerName: koord-scheduler
  load:
    prodIncludesSystem: {cel: "node.usage.total.cpu < millicores(0)"}
""",
)
"""What says the same as the pack, in a way that depends on what is measured: such decisions are not asked as columns."""


@pytest.mark.parametrize("seed", [1, 2])
def test_nodes_decided_at_once_come_to_the_same_as_one_by_one(seed: int) -> None:
    shifts = (service(f"web{number}", "3", 0.1 + 0.05 * number) for number in range(5))
    waves = (
        Arrival(35 * MINUTE, pod(f"wave{number}", "5"), None, Wave(0.9, 0.95, 1.0)) for number in range(4)
    )
    jobs = (
        job(f"job{number}", f"{2 + number % 5}", minutes=40 + 5 * number, at=2 * number)
        for number in range(14)
    )
    day = workload([*shifts, *waves, *jobs], [node("a"), node("b", 24)], minutes=120)
    tight = SUPPRESS % "35%"
    at_once = simulated(graph_with(tight), day, seed)
    one_by_one = simulated(graph_with(tight, *ASKED_NODE_BY_NODE), day, seed)
    assert at_once["suppression"]["withheldCoreHours"] > 0
    assert at_once["overcommit"]["kubernetes.io/batch-cpu"]["offeredMean"] > 0
    for told in (at_once, one_by_one):
        told.pop("policies")
        for extreme in ("lowest", "worst"):  # the rules that decided are others
            told["suppression"][extreme] = told["suppression"][extreme]["target"]
    assert at_once == one_by_one
